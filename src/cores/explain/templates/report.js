"use strict";
const details = JSON.parse(document.getElementById("details").textContent);
const cards = [...document.querySelectorAll(".card")];
const form = document.getElementById("filters");
const count = document.getElementById("count");
const dialog = document.getElementById("dialog");

function filter() {
  const wanted = Object.fromEntries(new FormData(form));
  const text = wanted.id.trim().toLowerCase();
  let shown = 0;
  for (const card of cards) {
    const fits = (!wanted.class || card.dataset.class === wanted.class)
      && (!wanted.right || card.dataset.right === wanted.right)
      && (!wanted.sure || card.dataset.sure === wanted.sure)
      && (!text || card.dataset.id.toLowerCase().includes(text));
    card.hidden = !fits;
    shown += fits;
  }
  count.textContent = `${shown} of ${cards.length} shown`;
}

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

function open(card) {
  const found = details[Number(card.dataset.at)];
  const drawing = card.querySelector("svg").cloneNode(true);
  found.points.forEach((point, at) => {
    if (!point) return;
    const label = document.createElementNS(drawing.namespaceURI, "text");
    label.setAttribute("class", "number");
    label.setAttribute("x", point[0] + 5);
    label.setAttribute("y", point[1] - 5);
    label.textContent = found.nodes[at][0];
    drawing.append(label);
  });
  document.getElementById("dialog-title").textContent = card.querySelector("h3").textContent;
  const told = (rows) => rows.map((row) => [...row.slice(0, -1), row[row.length - 1] ? "yes" : "no"]);
  const made = [table("Nodes", ["node", dialog.dataset.is, "keep-probability", "kept"], told(found.nodes))];
  if (found.edges) {
    made.push(table("Edges", ["from", "to", "keep-probability", "kept"], told(found.edges)));
  }
  document.getElementById("dialog-picture").replaceChildren(drawing);
  document.getElementById("dialog-tables").replaceChildren(...made);
  dialog.showModal();
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
for (const card of cards) {
  card.querySelector("button").addEventListener("click", () => open(card));
}
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
form.hidden = false;
filter();
