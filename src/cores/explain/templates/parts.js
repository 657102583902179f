// The slider of a report: the part of every graph at the sufficiency that is chosen.
const parts = JSON.parse(document.getElementById("parts").textContent);
const turn = document.querySelector(".turn");
const range = turn.querySelector("input");
let place = parts.own;

const bitsOf = (text, length) => {
  const bytes = bytesOf(text);
  return Array.from({ length }, (_, at) => Boolean(bytes[at >> 3] >> (at & 7) & 1));
};

// The part of a graph; null where the page had no room for it.
function partOf(found) {
  if (!found.parts) return null;
  const { nodes, edges, told } = found.parts[place];
  const inside = bitsOf(nodes, found.nodes.length);
  const count = found.ends.length / 2;
  return {
    nodes: inside,
    edges: edges === null // an edge is kept with its ends
      ? Array.from({ length: count }, (_, edge) => inside[found.ends[2 * edge]] && inside[found.ends[2 * edge + 1]])
      : bitsOf(edges, count),
    told,
  };
}

const path = (drawing, kind, d) => {
  const made = document.createElementNS(drawing.namespaceURI, "path");
  made.setAttribute("class", kind);
  made.setAttribute("d", d);
  return made;
};

// Paths of lines and dots, of those edges and nodes for which a test holds.
const lines = (found, edges) => edges.map((wanted, at) => {
  const [a, b] = [found.points[found.ends[2 * at]], found.points[found.ends[2 * at + 1]]];
  return wanted && a && b ? `M${a[0]} ${a[1]}L${b[0]} ${b[1]}` : "";
}).join("");
const dots = (found, nodes) => nodes.map((wanted, at) => {
  const point = found.points[at];
  return wanted && point ? `M${point[0]} ${point[1]}h0` : "";
}).join("");

function redrawMolecule(drawing, found, part) {
  drawing.querySelector(".mk")?.remove();
  drawing.querySelector("title").after(path(drawing, "mk", lines(found, part.edges) + dots(found, part.nodes)));
  for (const piece of drawing.querySelectorAll("[data-e],[data-n]")) {
    const { e, n } = piece.dataset;
    const inside = e === undefined ? part.nodes[Number(n)] : part.edges[Number(e)];
    const kind = piece.tagName === "text"
      ? (inside ? found.nodes[Number(n)].is : "gt")
      : (inside ? "k" : "g") + piece.getAttribute("class")[1];
    piece.setAttribute("class", kind);
  }
}

function redrawDots(drawing, found, part) {
  const truth = drawing.querySelector(".tr");
  const not = (values) => values.map((value) => !value);
  drawing.replaceChildren(drawing.querySelector("title"),
    path(drawing, "ge", lines(found, not(part.edges))), ...(truth ? [truth] : []),
    path(drawing, "ke", lines(found, part.edges)), path(drawing, "gn", dots(found, not(part.nodes))),
    path(drawing, "kn", dots(found, part.nodes)));
}

function redraw(card) {
  const found = details[Number(card.dataset.at)];
  const part = partOf(found);
  if (!part) return;
  const drawing = card.querySelector("svg");
  (drawing.querySelector("[data-e],[data-n]") ? redrawMolecule : redrawDots)(drawing, found, part);
  drawing.querySelector("title").textContent = `${card.dataset.id}: ${part.told.kept} are kept`;
  for (const value of card.querySelectorAll("dd[data-is]")) value.textContent = part.told[value.dataset.is];
}

detailsOf = (card) => {
  const found = details[Number(card.dataset.at)];
  const part = partOf(found);
  if (!part) return found;
  const kept = (row, at) => ({ ...row, kept: part.nodes[at] });
  return {
    nodes: parts.edgesAlone ? found.nodes : found.nodes.map(kept),
    points: found.points,
    ...(found.edges ? { edges: found.edges.map((row, at) => ({ ...row, kept: part.edges[at] })) } : {}),
  };
};

function turnTo(value) {
  place = value;
  range.value = place;
  range.setAttribute("aria-valuetext", parts.told[place]);
  turn.querySelector("output").textContent = parts.told[place];
  turn.querySelector("button").disabled = place === parts.own;
}

range.addEventListener("input", () => {
  turnTo(Number(range.value));
  cards.forEach(redraw);
});
turn.querySelector("button").addEventListener("click", () => {
  turnTo(parts.own);
  cards.forEach(redraw);
  range.focus(); // the button is disabled now
});
turn.hidden = false;
turnTo(parts.own);
