// The dial of a report: figures, marks and kept parts at the setting that is chosen.
const dial = JSON.parse(document.getElementById("dial-data").textContent);
const turns = [...document.querySelectorAll(".turn")];
let place = dial.own;

const percent = (share) => `${Math.round(100 * share)} %`;

const bitsOf = (text, length) => {
  const bytes = bytesOf(text);
  return Array.from({ length }, (_, at) => Boolean(bytes[at >> 3] >> (at & 7) & 1));
};

// What is kept of a graph at a setting, and predicted from it; null where no setting is told.
function keptAt(found, at) {
  if (!found.dial) return null;
  const [nodes, edges, predicted, probability, nodeShare, edgeShare, smiles] = found.dial.parts[found.dial.part[at]];
  const set = found.dial.sets[at];
  const inside = bitsOf(nodes, found.nodes.length);
  const count = found.ends.length / 2;
  return {
    nodes: inside,
    edges: edges === null // kept with their ends
      ? Array.from({ length: count }, (_, edge) => inside[found.ends[2 * edge]] && inside[found.ends[2 * edge + 1]])
      : bitsOf(edges, count),
    predicted, probability, nodeShare, edgeShare, smiles,
    set: set === null ? null : bitsOf(set, dial.classes.length),
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

function redrawMolecule(drawing, found, kept) {
  drawing.querySelector(".mk")?.remove();
  drawing.querySelector("title").after(path(drawing, "mk", lines(found, kept.edges) + dots(found, kept.nodes)));
  for (const part of drawing.querySelectorAll("[data-e],[data-n]")) {
    const { e, n } = part.dataset;
    const inside = e === undefined ? kept.nodes[Number(n)] : kept.edges[Number(e)];
    const kind = part.tagName === "text"
      ? (inside ? found.nodes[Number(n)].is : "gt")
      : (inside ? "k" : "g") + part.getAttribute("class")[1];
    part.setAttribute("class", kind);
  }
}

function redrawDots(drawing, found, kept) {
  const truth = drawing.querySelector(".tr");
  const not = (values) => values.map((value) => !value);
  drawing.replaceChildren(drawing.querySelector("title"),
    path(drawing, "ge", lines(found, not(kept.edges))), ...(truth ? [truth] : []),
    path(drawing, "ke", lines(found, kept.edges)), path(drawing, "gn", dots(found, not(kept.nodes))),
    path(drawing, "kn", dots(found, kept.nodes)));
}

function tellCard(card, kept) {
  const tell = (name, text) => { card.querySelector(`[data-is="${name}"]`).textContent = text; };
  const predicted = dial.classes[kept.predicted];
  tell("predicted", `${predicted}, probability ${kept.probability.toFixed(2)}`);
  tell("kept", `${percent(kept.nodeShare)} of ${dial.atoms}, ${percent(kept.edgeShare)} of edges`);
  if (kept.smiles !== undefined) tell("smiles", kept.smiles);
  if (kept.set) tell("set", dial.classes.filter((_, at) => kept.set[at]).join(", ") || "no label");
  if (card.dataset.label !== undefined) {
    const right = card.dataset.label === predicted;
    const mark = card.querySelector(".right, .wrong");
    mark.className = right ? "right" : "wrong";
    mark.textContent = right ? "✓ right" : "✗ wrong";
  }
}

// A card that can be seen is drawn anew at once, any other when it comes into sight.
function refresh(card) {
  if (Number(card.dataset.setting ?? dial.own) === place) return;
  card.dataset.setting = place;
  const found = details[Number(card.dataset.at)];
  const kept = keptAt(found, place);
  if (!kept) return;
  const drawing = card.querySelector("svg");
  (drawing.querySelector("[data-e],[data-n]") ? redrawMolecule : redrawDots)(drawing, found, kept);
  drawing.querySelector("title").textContent = `${card.dataset.id}: ${percent(kept.nodeShare)} of the nodes and `
    + `${percent(kept.edgeShare)} of the edges are kept; predicted ${dial.classes[kept.predicted]}`;
  tellCard(card, kept);
}
const inSight = new Set();
const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      inSight.add(target);
      refresh(target);
    } else inSight.delete(target);
  }
}, { rootMargin: "400px" });
cards.forEach((card) => watch.observe(card));
addEventListener("beforeprint", () => cards.forEach(refresh));

// Filters ask for what is predicted now, of cards out of sight, too.
function tellFilters(card) {
  const { dial: settings } = details[Number(card.dataset.at)];
  if (!settings) return;
  const predicted = settings.parts[settings.part[place]][2];
  const set = settings.sets[place];
  card.dataset.class = predicted;
  if (card.dataset.label !== undefined) {
    card.dataset.right = card.dataset.label === dial.classes[predicted] ? "yes" : "no";
  }
  if (set !== null) {
    card.dataset.sure = bitsOf(set, dial.classes.length).filter(Boolean).length === 1 ? "yes" : "no";
  }
}

detailsOf = (card) => {
  refresh(card);
  const found = details[Number(card.dataset.at)];
  const kept = place === dial.own ? null : keptAt(found, place);
  if (!kept) return found;
  const nodes = found.nodes.map((node, at) => (
    { ...node, keep_probability: null, kept: dial.edgesAlone || kept.nodes[at] }));
  const ends = kept.edges.map((inside, at) => [found.ends[2 * at], found.ends[2 * at + 1], inside]);
  const removed = ends.some(([a, b, inside]) => !inside && nodes[a].kept && nodes[b].kept);
  const byNumber = (a, b) => [nodes[a].node, nodes[b].node].sort((one, other) => one - other);
  const edges = ends.map(([a, b, inside]) => (
    { ends: byNumber(a, b), keep_probability: null, effect: null, kept: inside }));
  return { nodes, points: found.points, ...(removed ? { edges } : {}) };
};

function turnTo(setting) {
  place = setting;
  const told = `At lambda ${dial.settings[place]}: ${dial.figures[place] ?? "there is no calibration part"}`;
  for (const turn of turns) {
    const range = turn.querySelector("input");
    range.value = dial.settings[place];
    range.setAttribute("aria-valuetext", told);
    turn.querySelector("output").textContent = told;
    turn.querySelector("button").disabled = place === dial.own;
  }
  for (const mark of document.querySelectorAll(".chart .mark")) {
    const dot = mark.parentNode.querySelector(`.dot[data-at="${place}"]`);
    mark.setAttribute("cx", dot.getAttribute("cx"));
    mark.setAttribute("cy", dot.getAttribute("cy"));
  }
  cards.forEach(tellFilters);
  inSight.forEach(refresh);
  filter();
}

for (const turn of turns) {
  const range = turn.querySelector("input");
  range.addEventListener("input", () => turnTo(Math.round(Number(range.value) * (dial.settings.length - 1))));
  turn.querySelector("button").addEventListener("click", () => {
    turnTo(dial.own);
    range.focus(); // the button is disabled now
  });
  turn.hidden = false;
}
turnTo(dial.own);
