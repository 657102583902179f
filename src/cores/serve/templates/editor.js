"use strict";
// The editor: what clicks and keys make of a Molecule, and how it is drawn.
const canvas = by("canvas");
const FRAME = [0, 0, 480, 300];
const NEAR_ATOM = 16;
const NEAR_BOND = 10;
const TOOL_KEYS = { c: "C", n: "N", o: "O", s: "S", f: "F", l: "Cl", b: "Br", e: "other", 1: "1", 2: "2", 3: "3",
  r: "benzene", 6: "ring6", 5: "ring5", "+": "+", "-": "-", x: "erase" };
const RINGS = { benzene: [6, true], ring6: [6, false], ring5: [5, false] };
const ORDERS = ["", "single", "double", "triple"];
const editor = { drawn: new Molecule(), current: null, marked: null, from: null, past: [] };

const toolName = () => document.querySelector("[name=tool]:checked").value;
const chooseTool = (name) => { document.querySelector(`[name=tool][value="${name}"]`).checked = true; };
const chargeText = (charge) => (charge === 0 ? "" : `${Math.abs(charge) > 1 ? Math.abs(charge) : ""}${charge > 0 ? "+" : "−"}`);
const nameOf = ({ element: symbol, charge }) => symbol + chargeText(charge);

function otherElement() {
  const said = by("element").value.trim();
  const symbol = said.charAt(0).toUpperCase() + said.slice(1).toLowerCase();
  if (!ELEMENTS.has(symbol)) throw new Error(`There is no element ${said || "without a name"}.`);
  return symbol;
}

// What a tool does to an atom, to a bond, or where there is none of them; gives the atom to go on from.
function use(tool, target) {
  const { drawn, marked } = editor;
  const { atom, bond, point } = target;
  if (tool in RINGS) return drawn.ring(...RINGS[tool], target);
  if (tool === "erase") {
    const linked = marked && atom ? drawn.bondBetween(marked, atom) : null;
    const next = linked ? atom : drawn.neighbours(atom ?? {})[0] ?? null;
    drawn.remove(linked ? { bond: linked } : target);
    return next;
  }
  if (tool === "+" || tool === "-") {
    if (atom) atom.charge = Math.max(-MOST_CHARGE, Math.min(MOST_CHARGE, atom.charge + (tool === "+" ? 1 : -1)));
    return atom;
  }
  const order = Number(tool);
  if (order) {
    if (bond) bond.order = order;
    if (bond) return bond.ends[0];
    if (!atom) return drawn.sprout(drawn.add(point), order);
    if (!marked || marked === atom) return drawn.sprout(atom, order);
    drawn.join(marked, atom, order);
    return atom;
  }
  const symbol = tool === "other" ? otherElement() : tool;
  if (bond) return bond.ends[0];
  if (!atom) return drawn.add(point, symbol);
  return Object.assign(atom, { element: symbol, charge: 0 });
}

// Does something that can be undone.
function change(action) {
  const before = structuredClone({ atoms: editor.drawn.atoms, bonds: editor.drawn.bonds });
  try {
    editor.current = action() ?? null;
    editor.marked = null;
    editor.past = [...editor.past.slice(-99), before];
    showDrawing();
  } catch (error) {
    Object.assign(editor.drawn, before);
    editor.current = null;
    showDrawing();
    by("draw-told").textContent = error.message;
  }
}

function undo() {
  if (!editor.past.length) return;
  Object.assign(editor.drawn, editor.past.pop());
  editor.current = editor.drawn.atoms[editor.drawn.atoms.length - 1] ?? null;
  editor.marked = null;
  showDrawing();
}

function shape(name, attributes, text) {
  const made = document.createElementNS(canvas.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function bondPath({ ends: [a, b], order }) {
  const [across, down] = [(b.y - a.y), (a.x - b.x)].map((size) => 3.5 * size / (between(a, b) || 1));
  return [[], [0], [-1, 1], [-1.6, 0, 1.6]][order].map((shift) => `M${(a.x + shift * across).toFixed(1)} ${(a.y + shift * down).toFixed(1)}`
    + `L${(b.x + shift * across).toFixed(1)} ${(b.y + shift * down).toFixed(1)}`).join("");
}

function describe(atom) {
  const { drawn } = editor;
  const number = drawn.atoms.indexOf(atom) + 1;
  const bonds = drawn.bondsOf(atom).map(({ ends: [a, b], order }) => `${nameOf(a === atom ? b : a)} (${ORDERS[order]})`);
  return `Atom ${number} of ${drawn.atoms.length}: ${nameOf(atom)}${bonds.length ? `, bound to ${bonds.join(", ")}` : ""}`
    + `${editor.marked ? `; atom ${drawn.atoms.indexOf(editor.marked) + 1} is marked` : ""}.`;
}

function showDrawing() {
  const { drawn, current, marked } = editor;
  const bonds = shape("path", { class: "kb", d: drawn.bonds.map(bondPath).join("") });
  const labels = drawn.atoms.filter((atom) => atom.element !== "C" || atom.charge || !drawn.bondsOf(atom).length)
    .map((atom) => shape("text", { class: atom.element, x: atom.x, y: atom.y }, nameOf(atom)));
  const rings = [[current, "current"], [marked, "marked"]].filter(([atom]) => atom)
    .map(([{ x, y }, kind]) => shape("circle", { class: kind, cx: x, cy: y, r: kind === "marked" ? 16 : 12 }));
  canvas.replaceChildren(bonds, ...rings, ...labels);
  const sides = (name) => drawn.atoms.map((atom) => atom[name]);
  const [left, top] = [Math.min(FRAME[0], ...sides("x").map((x) => x - 30)), Math.min(FRAME[1], ...sides("y").map((y) => y - 30))];
  const [right, bottom] = [Math.max(FRAME[2], ...sides("x").map((x) => x + 30)), Math.max(FRAME[3], ...sides("y").map((y) => y + 30))];
  canvas.setAttribute("viewBox", [left, top, right - left, bottom - top].map(Math.round).join(" "));
  by("draw-smiles").textContent = drawn.smiles || "–";
  by("draw-told").textContent = current ? describe(current) : `${drawn.atoms.length || "No"} atoms.`;
  by("undo").disabled = editor.past.length === 0;
  for (const id of ["clear", "draw-ask", "draw-add"]) by(id).disabled = drawn.atoms.length === 0;
}

function placeOf(event) {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(canvas.getScreenCTM().inverse());
  return { x, y };
}

// The atom or the bond at a point, the nearest of them.
function targetAt(point) {
  const { atoms, bonds } = editor.drawn;
  const nearest = (some, distance, most) => some.map((each) => [distance(each), each])
    .filter(([far]) => far <= most).sort(([a], [b]) => a - b)[0]?.[1];
  const atom = nearest(atoms, (each) => between(each, point), NEAR_ATOM);
  const fromBond = ({ ends: [a, b] }) => {
    const along = ((point.x - a.x) * (b.x - a.x) + (point.y - a.y) * (b.y - a.y)) / between(a, b) ** 2;
    const within = Math.max(0, Math.min(1, along));
    return between(point, { x: a.x + within * (b.x - a.x), y: a.y + within * (b.y - a.y) });
  };
  return { point, atom, bond: atom ? undefined : nearest(bonds, fromBond, NEAR_BOND) };
}

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  editor.from = targetAt(placeOf(event));
  editor.marked = null;
});
canvas.addEventListener("pointerup", (event) => {
  const { from } = editor;
  if (!from) return;
  editor.from = null;
  const to = targetAt(placeOf(event));
  const order = Number(toolName());
  if (!order || !from.atom || between(from.point, to.point) < NEAR_ATOM || to.atom === from.atom) {
    change(() => use(toolName(), from));
    return;
  }
  change(() => {
    const turn = Math.PI / 12; // directions of a new bond are multiples of 15 degrees
    const angle = Math.round(angleTo(from.atom, to.point) / turn) * turn;
    const end = to.atom ?? editor.drawn.add(beside(from.atom, angle, BOND));
    editor.drawn.join(from.atom, end, order);
    return end;
  });
});
canvas.addEventListener("pointercancel", () => { editor.from = null; });

// The bound atom that lies best in a direction, else the nearest; those aside count as farther away.
function atomTowards(x, y) {
  const { drawn, current } = editor;
  if (!current) return drawn.atoms[0] ?? null;
  const least = (atoms, cost) => atoms.reduce((best, atom) => (cost(atom) < (best ? cost(best) : Infinity) ? atom : best), null);
  const ahead = (atom) => (atom.x - current.x) * x + (atom.y - current.y) * y;
  const aside = (atom) => Math.abs((atom.x - current.x) * y - (atom.y - current.y) * x);
  const bound = drawn.neighbours(current).filter((atom) => ahead(atom) > 0.4 * between(atom, current));
  return least(bound, aside) ?? least(drawn.atoms.filter((atom) => ahead(atom) > 1), (atom) => ahead(atom) + 2 * aside(atom)) ?? current;
}

const goTo = (atom) => {
  editor.current = atom;
  showDrawing();
};
const useHere = (tool) => {
  const [left, top, width, height] = FRAME;
  const point = { x: left + width / 2, y: top + height / 2 };
  const target = editor.current ? { atom: editor.current, point } : { point };
  if (editor.current || !editor.drawn.atoms.length) change(() => use(tool, target));
  else goTo(editor.drawn.atoms[0]);
};
const KEYS = {
  ArrowLeft: () => goTo(atomTowards(-1, 0)), ArrowRight: () => goTo(atomTowards(1, 0)),
  ArrowUp: () => goTo(atomTowards(0, -1)), ArrowDown: () => goTo(atomTowards(0, 1)),
  Enter: () => useHere(toolName()), " ": () => useHere(toolName()),
  Delete: () => editor.current && useHere("erase"), Backspace: () => editor.current && useHere("erase"),
  u: undo,
  m: () => {
    editor.marked = editor.current;
    showDrawing();
  },
};
canvas.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!(key in KEYS) && !(key in TOOL_KEYS)) return;
  event.preventDefault();
  if (key in KEYS) {
    KEYS[key]();
    return;
  }
  chooseTool(TOOL_KEYS[key]);
  by("draw-told").textContent = `${document.querySelector("[name=tool]:checked").getAttribute("aria-label")} is chosen.`;
});

by("undo").addEventListener("click", undo);
by("clear").addEventListener("click", () => change(() => {
  Object.assign(editor.drawn, { atoms: [], bonds: [] });
  return null;
}));
by("element").addEventListener("input", () => chooseTool("other"));
by("draw-ask").addEventListener("click", () => {
  askAbout({ file: new Blob([`${editor.drawn.smiles} drawn`]), name: facts.pasted, title: "Drawn" });
});
by("draw-add").addEventListener("click", () => {
  const field = by("paste").elements.text;
  field.value = `${field.value.trimEnd()}\n${editor.drawn.smiles}`.trimStart();
  by("draw-told").textContent = "Added to the field.";
});
