"use strict";
const by = (id) => document.getElementById(id);
const facts = document.body.dataset;
const perPage = () => Number(facts.perPage); // of the run's test graphs
const MOST_CLASSES = 6; // in the table of a card

let source = null; // what is asked about: {file, name} or {first}
let shown = []; // the cards, in order

function element(name, text, options = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return Object.assign(made, options);
}

const percent = (share) => `${Math.round(100 * share)} %`;
const digits = (value) => (value === null ? "–" : value.toFixed(3));

// Asks the server; an answer that is an error becomes one with its line.
async function request(parameters) {
  const query = new URLSearchParams(parameters);
  const alpha = by("alpha");
  if (alpha) query.set("alpha", alpha.value);
  for (const name of ["sufficiency", "parts"]) if (by(name)) query.set(name, by(name).value);
  let answer;
  try {
    if (source.file) {
      query.set("name", source.name);
      const headers = { "Content-Type": "application/octet-stream" };
      answer = await fetch(`/api/graphs?${query}`, { method: "POST", headers, body: source.file });
    } else {
      query.set("first", source.first);
      query.set("count", perPage());
      answer = await fetch(`/api/test?${query}`);
    }
  } catch {
    throw new Error("The server does not answer; is cores serve still running?");
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
    throw new Error(told.error);
  }
  return answer;
}

function tell(message) {
  by("error").textContent = message;
  by("error").hidden = !message;
}

// A table of a card; a row has cells that are elements, and says whether it is in the set.
function cardTable(head, rows) {
  const frame = element("div", undefined, { className: "scroll" });
  const table = element("table");
  const top = table.createTHead().insertRow();
  for (const [name, kind] of head) top.append(element("th", name, { scope: "col", className: kind }));
  const body = table.createTBody();
  for (const [name, marked, ...cells] of rows) {
    const row = body.insertRow();
    row.className = marked ? "in" : "";
    row.append(element("th", name, { scope: "row" }), ...cells);
  }
  frame.append(table);
  return frame;
}

function probabilityCell(share, text = digits(share), kind = "n") {
  const cell = element("td", text, { className: kind });
  const bar = element("span", undefined, { className: "bar" });
  bar.style.setProperty("--share", `${100 * share}%`);
  cell.append(bar);
  return cell;
}

function classesTable(graph) {
  const head = [["label", ""], ["probability", "n"], ["p-value", "n"], ["set", ""]];
  const frame = cardTable(head, graph.classes.slice(0, MOST_CLASSES).map((each) => [
    each.name, each.in_set, probabilityCell(each.probability),
    element("td", digits(each.p_value), { className: "n" }), element("td", each.in_set ? "✓ in" : "–"),
  ]));
  const more = graph.classes.length - MOST_CLASSES;
  if (more > 0) frame.append(element("p", `and ${more} less likely labels`, { className: "soft" }));
  return frame;
}

const mark = (correct, right = "✓ right", wrong = "✗ wrong") => element("span", correct ? right : wrong,
  { className: correct ? "right" : "wrong" });
const inBraces = (labels) => element("span", `{${labels.join(", ")}}`, { className: "labels" });

function labelsTable(graph) {
  const known = graph.labels.some((each) => each.label !== null);
  const head = [["label", ""], ["predicted", ""], ["set", ""]];
  return cardTable(known ? [...head, ["true", ""]] : head, graph.labels.map((each) => {
    const set = element("td");
    set.append(each.set === null ? "–" : inBraces(each.set));
    const told = `${each.prediction}, ${each.probability.toFixed(2)}`;
    const cells = [probabilityCell(each.probability, told, ""), set];
    if (known) {
      const value = element("td", each.label === null ? "–" : `${each.label} `);
      if (each.label !== null) value.append(mark(each.correct, "✓", "✗"));
      cells.push(value);
    }
    return [each.name, each.set?.length === 1, ...cells];
  }));
}

function factsOf(graph) {
  const list = element("dl");
  const add = (name, ...values) => {
    const value = element("dd");
    value.append(...values);
    list.append(element("dt", name), value);
  };
  if (graph.classes) {
    const from = facts.seen ? ` on the ${facts.seen}` : "";
    add("predicted", `${graph.prediction}, probability ${graph.probability.toFixed(2)}${from}`);
    if (graph.label !== null) add("true", `${graph.label} `, mark(graph.correct));
    if (graph.set !== null) add("set", inBraces(graph.set), `: ${graph.promise}`);
  } else if (!graph.labels) { // a number
    add("predicted", element("span", graph.prediction, { className: "labels" }));
    if (graph.label !== null) add("true", graph.label);
    if (graph.interval) add("interval", graph.interval.join(" to "));
  }
  add("kept", `${percent(graph.node_ratio)} of ${graph.nodes} ${facts.atoms}, `
    + `${percent(graph.edge_ratio)} of ${graph.edges} ${facts.bonds}`);
  if (graph.kept_smiles) add("SMILES", element("code", graph.kept_smiles));
  for (const [name, text] of Object.entries(graph.part)) add(name, text);
  return list;
}

// The part of a card that changes with the error rate.
function answerPart(graph) {
  const part = element("div", undefined, { className: "answer" });
  if (graph.labels) part.append(labelsTable(graph));
  part.append(factsOf(graph));
  if (graph.classes) part.append(classesTable(graph));
  return part;
}

function cardOf(graph) {
  const card = element("li", undefined, { className: "card" });
  card.append(element("h3", graph.name));
  const holder = element("template");
  holder.innerHTML = graph.drawing ?? ""; // made by the server, its texts escaped
  card.append(holder.content, answerPart(graph));
  if (graph.note) card.append(element("p", graph.note, { className: "soft" }));
  if (graph.details) {
    const button = element("button", "Details", { type: "button" });
    button.setAttribute("aria-label", `Details of ${graph.name}`);
    button.addEventListener("click", () => openDetails(card, graph.details));
    card.append(button);
  }
  return card;
}

function summary(answer) {
  const count = answer.graphs.length;
  const graphs = `${count} graph${count === 1 ? "" : "s"}`;
  if (source.file) {
    const all = answer.total === null ? `; only the first ${answer.most} rows were read` : "";
    return `${source.title}: ${graphs}${all}.`;
  }
  const last = answer.first + count - 1;
  return `Test graphs ${answer.first} to ${last} of ${answer.total}.`;
}

function show(answer) {
  const drawn = answer.graphs.length === 0 || "drawing" in answer.graphs[0];
  by("promise").textContent = answer.promise;
  by("status").textContent = summary(answer);
  if (!drawn) {
    answer.graphs.forEach((graph, at) => shown[at].querySelector(".answer").replaceWith(answerPart(graph)));
    return;
  }
  shown = answer.graphs.map(cardOf);
  by("gallery").replaceChildren(...shown);
  const failed = by("failed");
  failed.hidden = answer.failed.length === 0;
  const rows = answer.failed.length === 1 ? "row" : "rows";
  failed.querySelector("summary").textContent = `${answer.failed.length} ${rows} could not be used`;
  failed.querySelector("ul").replaceChildren(...answer.failed.map((line) => element("li", line)));
  document.querySelector(".legend .truth").hidden = !answer.graphs.some((graph) => graph.truth);
  by("pages").hidden = Boolean(source.file);
  const [previous, next] = by("pages").children;
  previous.disabled = answer.first === 0;
  next.disabled = answer.first + perPage() >= (answer.total ?? 0);
  by("found").hidden = false;
}

// One request at a time; what is asked meanwhile comes after it, once.
let wanted = null;
let busy = false;
async function ask(drawings) {
  if (!source) return;
  wanted = { drawings: drawings || Boolean(wanted?.drawings) };
  if (busy) return;
  busy = true;
  by("found").setAttribute("aria-busy", "true");
  if (drawings) by("status").textContent = "Asking the model …";
  while (wanted) {
    const now = wanted;
    const about = source;
    wanted = null;
    try {
      const answer = await (await request({ drawings: now.drawings })).json();
      if (about === source) {
        tell("");
        show(answer);
      }
    } catch (error) {
      tell(error.message);
      if (now.drawings) {
        by("status").textContent = "No answer.";
        by("found").hidden = true;
      }
    }
  }
  busy = false;
  by("found").removeAttribute("aria-busy");
}

function askAbout(next) {
  source = next;
  return ask(true);
}

by("paste").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = new FormData(event.target).get("text");
  askAbout({ file: new Blob([text]), name: facts.pasted, title: "Pasted" });
});
by("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (!file) return;
  if (file.size > Number(facts.mostBytes)) {
    tell(`The file has more than ${facts.size}; cores predict takes files of any size.`);
    return;
  }
  askAbout({ file, name: file.name, title: file.name });
});
by("test").addEventListener("click", () => askAbout({ first: 0 }));
for (const button of by("pages").children) {
  button.addEventListener("click", async () => {
    await askAbout({ first: Math.max(0, source.first + perPage() * Number(button.dataset.step)) });
    by("results").focus(); // the button may be disabled now, and the cards are others
  });
}

for (const button of by("downloads").children) {
  button.addEventListener("click", async () => {
    const format = button.dataset.format;
    try {
      const records = await (await request({ format })).blob();
      const address = URL.createObjectURL(records);
      element("a", undefined, { href: address, download: `predictions.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      tell(error.message);
    }
  });
}

if (by("alpha")) {
  let timer;
  const changed = (from, to) => from.addEventListener("input", () => {
    if (!from.checkValidity() || from.value === "") return;
    to.value = from.value;
    clearTimeout(timer);
    timer = setTimeout(() => ask(false), 150);
  });
  changed(by("alpha-range"), by("alpha"));
  changed(by("alpha"), by("alpha-range"));
}
for (const name of ["sufficiency", "parts"]) {
  let timer;
  by(name)?.addEventListener("input", ({ target }) => {
    if (name === "sufficiency") by("sufficiency-value").textContent = target.value;
    clearTimeout(timer);
    timer = setTimeout(() => ask(true), 150); // other parts are kept: they are drawn anew
  });
}
