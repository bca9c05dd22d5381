// Runs carag/service/console/static/docs.js with a document of its own, which has text and elements and no markup:
// docs_page.cjs SCRIPT DESCRIPTION REPLY. Prints what the page shows, and what it sent.
"use strict";
const { readFileSync } = require("node:fs");
const vm = require("node:vm");

class Element {
  constructor(name) { Object.assign(this, { name, attributes: {}, children: [], listeners: {} }); }
  setAttribute(key, value) { this.attributes[key] = value; }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.children = more; }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  scrollIntoView() { scrolled.push(this.attributes.id); }
  get textContent() { return this.children.map((one) => one.textContent ?? String(one)).join(""); }
  set textContent(text) { this.children = [text]; }
  get value() { return this.typed ?? this.textContent; }
  set value(text) { this.typed = text; }
  set innerHTML(_) { throw new Error("markup"); }
  all() { return [this, ...this.children.flatMap((one) => one.all?.() ?? [])]; }
}

const [script, described, replied] = process.argv.slice(2).map((path) => readFileSync(path, "utf8"));
const sent = [], scrolled = [], root = new Element("main");
for (const id of ["token", "state", "interface"]) {
  const made = new Element("div");
  made.setAttribute("id", id);
  root.append(made);
}
const byId = (id) => root.all().find((one) => one.attributes.id === id) ?? null;
const document = { createElement: (name) => new Element(name), getElementById: byId };
async function fetch(address, options) {
  if (address === "/openapi.json") return Response.json(JSON.parse(described));
  sent.push([address, options]);
  return new Response(replied, { status: 403, statusText: "No", headers: { "content-type": "application/json" } });
}
// Whatever else a browser has, a place to keep the token among it, is not there.
vm.runInNewContext(script, { document, fetch, location: { hash: "#retrieve" }, TextDecoder });

setImmediate(async () => {
  await new Promise(setImmediate);
  byId("token").value = " secret ";
  const shown = [];
  for (const form of root.all().filter((one) => one.name === "form")) {
    for (const field of form.all().filter((one) => one.name === "input")) field.value = "0/a b";
    await form.listeners.submit({ preventDefault() {} });
    shown.push(form.all().find((one) => one.attributes.class === "reply").textContent);
  }
  const all = root.all();
  console.log(JSON.stringify({
    state: byId("state").textContent, text: root.textContent, names: [...new Set(all.map((one) => one.name))],
    ids: all.map((one) => one.attributes.id).filter(Boolean),
    links: all.filter((one) => one.name === "a").map((one) => one.attributes.href), sent, shown, scrolled,
  }));
});
