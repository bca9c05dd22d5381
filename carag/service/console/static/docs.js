"use strict";
// Shows what /openapi.json describes and sends requests. All that is shown goes in as text, never as markup: a reply may
// hold anything. The token is read from its field when a request is sent, and is kept nowhere else.

const HEADERS = ["content-type", "location", "retry-after", "www-authenticate", "allow"];
const LIMITS = [
  ["minimum", "at least"], ["exclusiveMinimum", "more than"], ["maximum", "at most"],
  ["minLength", "characters: at least"], ["maxLength", "characters: at most"],
  ["maxItems", "entries: at most"], ["maxProperties", "keys: at most"], ["pattern", "of the form"],
];
const BYTES_SHOWN = 512;

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children); // a string becomes a text node
  return made;
}

const code = (text) => element("code", {}, text);
const anchor = (id) => element("a", { href: `#${id}` }, id);

/** Name invisible characters, and those that reverse the order of others. */
const visible = (text) =>
  text.replace(/(?![\n\t])\p{C}/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

/** Paragraphs of a docstring; what stands in backticks is code. */
const paragraphs = (text) =>
  (text ?? "").split("\n\n").filter(Boolean).map((part) =>
    element("p", {}, ...part.split(/(?::\w+:)?`+([^`]+)`+/).map((one, place) => (place % 2 ? code(one) : one))));

const limits = (schema) =>
  LIMITS.filter(([key]) => key in schema).map(([key, words]) => `, ${words} ${schema[key]}`).join("");

/** Say what a value is, with links to the schemas that it names. */
function kind(schema) {
  if (schema.$ref) return [anchor(schema.$ref.split("/").pop())];
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.flatMap((one, place) => [place ? " or " : "", ...kind(one)]);
  const known = schema.enum ?? ("const" in schema ? [schema.const] : null);
  if (known) return [known.map((one) => JSON.stringify(one)).join(" or ")];
  if (schema.type === "array") return ["list of ", ...kind(schema.items ?? {}), limits(schema)];
  const values = schema.additionalProperties;
  if (typeof values === "object") return ["object with values of ", ...kind(values), limits(schema)];
  return [schema.type ?? "any JSON", limits(schema)];
}

function facts(rows) {
  return element("dl", { class: "facts" },
    ...rows.map(([name, ...said]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...said))));
}

function fields(schema) {
  const wanted = schema.required ?? [];
  return facts(Object.entries(schema.properties ?? {}).map(([name, one]) => [
    code(name), ...kind(one),
    wanted.includes(name) ? "; required" : "default" in one ? `; by default ${JSON.stringify(one.default)}` : "",
    ...paragraphs(one.description),
  ]));
}

function bodyOf(described, operation) {
  const name = operation.requestBody?.content["application/json"].schema.$ref.split("/").pop();
  return name && { name, schema: described.components.schemas[name] };
}

function input(id, label, made, hint) {
  made.setAttribute("id", id);
  made.setAttribute("autocomplete", "off");
  made.setAttribute("spellcheck", "false");
  return [element("label", { for: id }, label, ...(hint ? [" ", element("span", { class: "hint" }, ...hint)] : [])), made];
}

/** The form that sends a request, with the example of the description filled in. */
function form(described, path, method, operation) {
  const id = operation.operationId, body = bodyOf(described, operation);
  const parameters = (operation.parameters ?? []).map((one) => ({ one, made: element("input", { required: "" }) }));
  const text = body && element("textarea", { class: "code", rows: "8" }, JSON.stringify(body.schema.examples[0], null, 2));
  const button = element("button", { type: "submit" }, "Send"), told = element("p", { role: "status" });
  const reply = element("div", { class: "reply" });
  const made = element("form", {},
    ...parameters.flatMap(({ one, made: field }) => input(`${id}-${one.name}`, one.name, field, kind(one.schema))),
    ...(body ? input(`${id}-body`, "Body", text) : []), button, told, reply);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    told.textContent = "Waiting …";
    reply.replaceChildren();
    try {
      const sent = request(path, method, parameters, text);
      await show(await fetch(...sent), told, reply);
    } catch (error) {
      told.textContent = `No answer: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  });
  return made;
}

function request(path, method, parameters, text) {
  const headers = {}, token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  if (text) headers["Content-Type"] = "application/json";
  let address = path;
  for (const { one, made } of parameters) {
    if (one.in === "header") headers[one.name] = made.value;
    else address = address.replace(`{${one.name}}`, () => made.value.split("/").map(encodeURIComponent).join("/"));
  }
  // Without the cookie of the console: only the token that was typed counts.
  return [address, { method: method.toUpperCase(), headers, body: text?.value, credentials: "omit", cache: "no-store" }];
}

async function show(answer, told, reply) {
  const data = new Uint8Array(await answer.arrayBuffer());
  told.textContent = `${answer.status} ${answer.statusText}, ${data.length} bytes`;
  const type = answer.headers.get("content-type") ?? "";
  const named = HEADERS.filter((name) => answer.headers.has(name));
  reply.append(
    facts(named.map((name) => [code(name), visible(answer.headers.get(name))])),
    element("pre", { tabindex: "0", role: "region", "aria-label": "Body of the answer" }, readable(data, type)),
  );
}

/** A body as text: JSON laid out, bytes as hexadecimal digits. */
function readable(data, type) {
  if (type.startsWith("application/octet-stream")) {
    const shown = [...data.slice(0, BYTES_SHOWN)].map((one) => one.toString(16).padStart(2, "0")).join(" ");
    return shown + (data.length > BYTES_SHOWN ? " …" : "");
  }
  const text = new TextDecoder().decode(data);
  if (!/^application\/(\w+\+)?json/.test(type)) return visible(text);
  try {
    return visible(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return visible(text); // not what its type says: shown as it came
  }
}

function operationSection(described, path, method, operation) {
  const id = operation.operationId, body = bodyOf(described, operation);
  const responses = Object.entries(operation.responses).map(([status, one]) => {
    const schema = Object.values(one.content ?? {})[0]?.schema;
    return [code(status), ...paragraphs(one.description), Object.keys(one.content ?? {}).join(", "),
      ...(schema?.$ref ? [": ", ...kind(schema)] : [])];
  });
  return element("section", { id, class: "panel", "aria-labelledby": `${id}-title` },
    element("h3", { id: `${id}-title` }, element("a", { href: `#${id}` }, operation.summary), " ",
      code(`${method.toUpperCase()} ${path}`)),
    ...paragraphs(operation.description),
    ...(operation.parameters ? [element("h4", {}, "Parameters"), facts(operation.parameters.map((one) =>
      [code(one.name), `in the ${one.in}: `, ...kind(one.schema), one.required ? "; required" : ""]))] : []),
    ...(body ? [element("h4", {}, "Body: ", anchor(body.name)), fields(body.schema)] : []),
    element("details", {}, element("summary", {}, "Responses"), facts(responses)),
    element("details", {}, element("summary", {}, "Send a request"), form(described, path, method, operation)));
}

function build(described) {
  const all = Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ path, method, one, tag: one.tags[0] })));
  const tags = [...new Set(all.map(({ tag }) => tag))];
  const of = (tag) => all.filter((one) => one.tag === tag);
  document.getElementById("interface").append(
    element("nav", { "aria-label": "Operations" }, facts(tags.map((tag) =>
      [tag, ...of(tag).flatMap(({ one }, place) => [place ? ", " : "", anchor(one.operationId)])]))),
    ...tags.flatMap((tag) => [element("h2", {}, tag),
      ...of(tag).map(({ path, method, one }) => operationSection(described, path, method, one))]),
    element("h2", {}, "Schemas"),
    ...Object.entries(described.components.schemas).map(([name, schema]) =>
      element("section", { id: name }, element("h3", {}, name), ...paragraphs(schema.description), fields(schema))));
}

async function start() {
  const state = document.getElementById("state");
  try {
    const answer = await fetch("/openapi.json", { credentials: "omit" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const described = await answer.json();
    build(described);
    state.textContent = `${described.info.title} ${described.info.version}`;
    document.getElementById(location.hash.slice(1))?.scrollIntoView(); // it was not there when the page was opened
  } catch (error) {
    state.textContent = `The description cannot be read: ${error.message}. Load the page again.`;
  }
}

start();
