// Details come as JSON, packed by gzip.
const bytesOf = (text) => Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
const unpacked = new Blob([bytesOf(document.getElementById("details").textContent)]).stream()
  .pipeThrough(new DecompressionStream("gzip"));
const details = await new Response(unpacked).json();
const cards = [...document.querySelectorAll(".card")];
const form = document.getElementById("filters");
const count = document.getElementById("count");

// Details of a card; the script of the slider puts those of another part in their place.
let detailsOf = (card) => details[Number(card.dataset.at)];

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
  card.querySelector("button").addEventListener("click", () => openDetails(card, detailsOf(card)));
}
form.hidden = false;
filter();
