const packed = JSON.parse(document.getElementById("details").textContent);
const cards = [...document.querySelectorAll(".card")];
const form = document.getElementById("filters");
const count = document.getElementById("count");

// Details come packed in columns; a graph's are unpacked when they are first asked for.
const bytesOf = (text) => Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
const bitsOf = (text, length) => {
  const bytes = bytesOf(text);
  return Array.from({ length }, (_, at) => Boolean(bytes[at >> 3] >> (at & 7) & 1));
};
const numbersOf = (text) => {
  const { buffer } = bytesOf(text.slice(1));
  return [...(text[0] === "2" ? new Uint16Array(buffer) : new Uint32Array(buffer))];
};
const scoresOf = (text) => (text === null ? [] : numbersOf(text).map((score) => score / 1000));

const effectsOf = ([most, text]) => numbersOf(text).map((step) => Number((most * (step - 1000) / 1000).toPrecision(2)));

function unpacked({ names, is, scores, kept, points, numbers, edges, effects, edgeEffects, dial: settings, ends }) {
  const [name, score, places] = [numbersOf(is), scoresOf(scores), numbersOf(points)];
  const inside = bitsOf(kept, name.length);
  const withEffects = (rows, packed) => {
    if (packed) effectsOf(packed).forEach((effect, at) => rows[at].push(effect));
    return rows;
  };
  const found = {
    nodes: withEffects(
      name.map((word, at) => [numbers ? numbers[at] : at, names[word], score[at] ?? null, Number(inside[at])]), effects),
    points: name.map((_, at) => (places[2 * at] === 0xffff ? null : [places[2 * at], places[2 * at + 1]])),
  };
  if (edges) {
    const [one, other, edgeScore] = [numbersOf(edges[0]), numbersOf(edges[1]), scoresOf(edges[2])];
    const keptEdges = bitsOf(edges[3], one.length);
    found.edges = withEffects(
      one.map((end, at) => [end, other[at], edgeScore[at] ?? null, Number(keptEdges[at])]), edgeEffects);
  }
  return settings ? { ...found, dial: settings, ends: numbersOf(ends) } : found;
}
const known = [];
const detailsAt = (at) => known[at] ??= unpacked(packed[at]);

// Of a card; a script of the dial puts those of its setting in their place.
let detailsOf = (card) => detailsAt(Number(card.dataset.at));

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

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
for (const card of cards) {
  card.querySelector("button").addEventListener("click", () => {
    const found = detailsOf(card);
    openDetails(card.querySelector("h3").textContent, card.querySelector("svg").cloneNode(true), found);
  });
}
form.hidden = false;
filter();
