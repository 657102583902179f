"use strict";
const dialog = document.getElementById("dialog");

function table(caption, head, rows) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const top = made.createTHead().insertRow();
  for (const name of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    top.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value) => { line.insertCell().textContent = value ?? "–"; });
    line.className = row[row.length - 1] === "yes" ? "is-kept" : "";
  }
  return made;
}

// A drawing that can be enlarged and moved: only its viewBox changes.
class View {
  constructor(drawing) {
    this.drawing = drawing;
    const { x, y, width, height } = drawing.viewBox.baseVal;
    this.full = [x, y, width, height];
    this.box = [...this.full];
    drawing.addEventListener("wheel", (event) => {
      event.preventDefault();
      const place = drawing.getBoundingClientRect();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8,
        (event.clientX - place.left) / place.width, (event.clientY - place.top) / place.height);
    }, { passive: false });
    drawing.addEventListener("pointerdown", (event) => {
      if (this.box[2] < this.full[2]) drawing.setPointerCapture(event.pointerId);
    });
    drawing.addEventListener("pointermove", (event) => {
      if (!drawing.hasPointerCapture(event.pointerId)) return;
      const scale = this.box[2] / drawing.getBoundingClientRect().width;
      this.move(-event.movementX * scale, -event.movementY * scale);
    });
  }

  zoom(factor, left = 0.5, top = 0.5) {
    const [x, y, width, height] = this.box;
    const least = this.full[2] / 12;
    const wide = factor ? Math.min(this.full[2], Math.max(least, width * factor)) : this.full[2];
    const tall = wide * this.full[3] / this.full[2];
    this.box = [x + (width - wide) * left, y + (height - tall) * top, wide, tall];
    this.move(0, 0);
  }

  move(right, down) {
    const [x, y, width, height] = this.box;
    const within = (value, first, size, all) => Math.min(first + all - size, Math.max(first, value));
    this.box[0] = within(x + right, this.full[0], width, this.full[2]);
    this.box[1] = within(y + down, this.full[1], height, this.full[3]);
    this.drawing.setAttribute("viewBox", this.box.join(" "));
    this.drawing.classList.toggle("zoomed", width < this.full[2]);
  }
}

let view = null;
const picture = document.getElementById("dialog-picture");
const told = document.getElementById("told");
const hint = told.textContent;
const keys = {
  "+": () => view.zoom(0.8), "-": () => view.zoom(1.25), 0: () => view.zoom(0),
  ArrowLeft: () => view.move(-view.box[2] / 8, 0), ArrowRight: () => view.move(view.box[2] / 8, 0),
  ArrowUp: () => view.move(0, -view.box[3] / 8), ArrowDown: () => view.move(0, view.box[3] / 8),
};
picture.addEventListener("keydown", (event) => {
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => view.zoom(Number(button.dataset.zoom)));
}

const shortly = (value, digits) => (value === null ? "–" : Number(value.toPrecision(digits)));

// Shows the graph of a card in the dialog: its drawing with the nodes' numbers, and what each node is.
function openDetails(card, found) {
  const drawing = card.querySelector("svg").cloneNode(true);
  found.points.forEach((point, at) => {
    if (!point) return;
    const label = document.createElementNS(drawing.namespaceURI, "text");
    label.setAttribute("class", "number");
    label.setAttribute("x", point[0] + 5);
    label.setAttribute("y", point[1] - 5);
    label.textContent = found.nodes[at].node;
    const hit = document.createElementNS(drawing.namespaceURI, "circle");
    hit.setAttribute("class", "hit");
    hit.setAttribute("cx", point[0]);
    hit.setAttribute("cy", point[1]);
    hit.setAttribute("r", 9);
    hit.addEventListener("pointerenter", () => {
      const { node, is, keep_probability: probability, effect, kept } = found.nodes[at];
      told.textContent = `${dialog.dataset.is === "atom" ? "Atom" : "Node"} ${node}: ${is || "–"}; `
        + `keep-probability ${shortly(probability, 3)}; `
        + `${effect === null ? "" : `effect ${shortly(effect, 2)}; `}${kept ? "kept" : "removed"}`;
    });
    drawing.append(label, hit);
  });
  document.getElementById("dialog-title").textContent = card.querySelector("h3").textContent;
  const listed = (caption, first, second, rows, names) => {
    const effects = rows.length > 0 && rows[0].effect !== null; // where the model has learnt them
    return table(caption, [first, second, "keep-probability", ...(effects ? ["effect"] : []), "kept"], rows.map((row) => [
      ...names(row), shortly(row.keep_probability, 3), ...(effects ? [shortly(row.effect, 2)] : []), row.kept ? "yes" : "no"]));
  };
  const made = [listed("Nodes", "node", dialog.dataset.is, found.nodes, (row) => [row.node, row.is])];
  if (found.edges) made.push(listed("Edges", "from", "to", found.edges, (row) => row.ends));
  picture.replaceChildren(drawing);
  view = new View(drawing);
  told.textContent = hint;
  document.getElementById("dialog-tables").replaceChildren(card.querySelector("dl").cloneNode(true), ...made);
  dialog.showModal();
}

dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
