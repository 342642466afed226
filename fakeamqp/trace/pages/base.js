"use strict";
// What the scripts of the pages share. Data from peers reaches a page through text nodes only.
const parts = (() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  function element(tag, name, ...children) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children.flat());
    return made;
  }

  function button(text, name, action) {
    const made = element("button", name, text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  }

  const number = (value) => value.toLocaleString("en-US");
  const many = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

  // Invisible characters, and those that change the direction of text, are shown by their codes.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

  function code(character) {
    const value = character.charCodeAt(0);
    // A lone surrogate of this range stands for an octet that is not UTF-8.
    const small = value < 256 ? value : value >= 0xdc80 && value <= 0xdcff ? value - 0xdc00 : -1;
    return small >= 0 ? `\\x${small.toString(16).padStart(2, "0")}` : `\\u${value.toString(16).padStart(4, "0")}`;
  }

  const plainly = (text) => String(text).replace(UNSEEN, code);

  function seen(text) {
    const found = [];
    let start = 0;
    for (const each of text.matchAll(UNSEEN)) {
      if (each.index > start) found.push(document.createTextNode(text.slice(start, each.index)));
      found.push(element("span", "escaped", code(each[0])));
      start = each.index + each[0].length;
    }
    if (start < text.length || !found.length) found.push(document.createTextNode(text.slice(start)));
    return found;
  }

  function span(value) {
    if (value < 5e-7) return "0 s";
    if (value < 1e-3) return `${Math.round(value * 1e6)} us`;
    if (value < 1) return `${(value * 1e3).toFixed(value < 0.01 ? 2 : 1)} ms`;
    if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
    if (value < 7200) return `${(value / 60).toFixed(1)} min`;
    if (value < 172800) return `${(value / 3600).toFixed(1)} h`;
    return `${(value / 86400).toFixed(1)} days`;
  }

  const seconds = (value) => value.toFixed(Math.abs(value) >= 1000 ? 3 : 6);

  // --- bodies and fields ------------------------------------------------------------------------------------

  function octets(body) {
    if (body[0] === "text") return new TextEncoder().encode(body[1]);
    return Uint8Array.from(atob(body[1]), (character) => character.charCodeAt(0));
  }

  /** The beginning of a body in one line. */
  function preview(body, size) {
    if (!body) return size === 0 ? "(empty)" : many(size, "byte");
    if (size === 0) return "(empty)";
    if (body[0] === "text") return body[1].slice(0, 160).replace(/\s+/g, " ");
    return Array.from(octets([body[0], body[1].slice(0, 32)]), (octet) => octet.toString(16).padStart(2, "0")).join(" ");
  }

  function hex(some) {
    const lines = [];
    for (let at = 0; at < some.length; at += 16) {
      const part = Array.from(some.slice(at, at + 16));
      const codes = part.map((octet) => octet.toString(16).padStart(2, "0")).join(" ");
      const text = part.map((octet) => (octet > 31 && octet < 127 ? String.fromCharCode(octet) : ".")).join("");
      lines.push(`${at.toString(16).padStart(4, "0")}  ${codes.padEnd(47)}  ${text}`);
    }
    return lines.join("\n");
  }

  /** JSON over several lines, with its numbers and texts as they are; null for any other text. */
  function indented(text) {
    try { const value = JSON.parse(text); if (value === null || typeof value !== "object") return null; } catch { return null; }
    let made = "", depth = 0;
    const line = () => `\n${"  ".repeat(depth)}`;
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
      if (token === "{" || token === "[") { depth += 1; made += token + line(); }
      else if (token === "}" || token === "]") { depth -= 1; made = /[{[]\s*$/.test(made) ? made.trimEnd() + token : made + line() + token; }
      else made += token === "," ? token + line() : token === ":" ? ": " : token;
    }
    return made;
  }

  function section(title, note, ...children) {
    return element("section", "", element("h3", "", title, element("small", "", note)), ...children);
  }

  /** A table of fields: [depth, name, value, type], see rows.py. `show` makes nodes of a text. */
  function table(fields, caption, show = seen) {
    const made = element("table", "", element("tbody", "", ...fields.map(([depth, name, value, type]) => {
      const head = element("th", "", ...show(name));
      head.scope = "row";
      head.style.paddingLeft = `${Math.min(depth, 8) * 14}px`;
      const empty = type === "s" && value === "";
      return element("tr", "", head, element("td", empty ? "z" : type, ...(empty ? ["(empty)"] : show(value))));
    })));
    made.setAttribute("aria-label", caption);
    return made;
  }

  /** A body as JSON, as text or in hex, of which `size` bytes came. */
  function bodySection(body, size, show = seen) {
    if (!body || !size) return section("Body", size ? many(size, "byte") : "empty");
    const bytes = octets(body), views = [];
    const whole = bytes.length === size && body[0] === "text" ? indented(body[1]) : null;
    if (whole !== null) views.push(["JSON", whole]);
    if (body[0] === "text") views.push(["Text", body[1]]);
    views.push(["Hex", null]);
    const box = element("pre", "");
    box.tabIndex = 0;
    box.setAttribute("aria-label", "Body");
    const choice = element("span", "views");
    const choose = (chosen) => {
      [...choice.children].forEach((one, at) => one.setAttribute("aria-pressed", at === chosen));
      const text = views[chosen][1];
      box.className = text === null ? "hex" : "";
      box.replaceChildren(...(text === null ? [hex(bytes.slice(0, 4096))] : show(text)));
    };
    views.forEach(([name], at) => choice.append(button(name, "small", () => choose(at))));
    choose(0);
    const made = section("Body", bytes.length < size ? `${many(size, "byte")}, the first ${many(bytes.length, "byte")} shown` : many(size, "byte"), box);
    made.firstChild.append(choice);
    return made;
  }

  // --- the story of a message --------------------------------------------------------------------------------

  /** What happened to one message, from rows of rows.py: their events in order. `open(row)` goes to an event. */
  function story({ rows, pool, connections }, message, open) {
    const steps = rows.filter((row) => row[15] === message && row[3] === 3);
    if (!steps.length) return section("Story", "the trace has no event of this message");
    const began = steps[0][1];
    const list = element("ol", "story", ...steps.map((row) => {
      const name = pool[row[6]], connection = connections[row[2]];
      const after = row === steps[0] ? `${seconds(row[1])} s` : `+${span(row[1] - began)}`;
      const step = button("", row[9] ? "moment bad" : "moment", () => open(row));
      step.title = plainly(WORDS[name] || "");
      step.append(element("b", "", ...seen(name)), element("span", "soft", after));
      if (connection) step.append(element("span", "soft", ...seen(connection.connection_name || connection.alias)));
      // The message itself is the same in all steps.
      step.append(element("span", "told", ...seen(pool[row[7]].split(": message b")[0])));
      return element("li", row[9] ? "bad" : "", step);
    }));
    const begun = pool[steps[0][6]] === "published";
    return section("Story", begun ? many(steps.length, "step") : `${many(steps.length, "step")}; the trace no longer has the earlier ones`, list);
  }

  // --- words -------------------------------------------------------------------------------------------------

  /** Terms and their explanations; a page adds the events of the broker. */
  const WORDS = {
    ready: "Messages in the queue that the broker can deliver.",
    unacked: "Messages that a client has got and not yet acknowledged.",
    "set aside": "Messages that a quorum queue holds back: for a delayed retry, or until their dead letter is confirmed.",
    prefetch: "How many unacked messages a consumer may hold.",
    unroutable: "No binding of the exchange fits the routing key: the broker drops or returns the message.",
    "dead letter": "A message that was rejected, expired or had no room, and that its queue passed on to an exchange.",
    TTL: "Time to live: a message that stays longer in the queue expires.",
    DLX: "Dead-letter exchange: the queue passes its dead letters to it.",
    DLK: "The routing key of dead letters.",
    Pri: "The queue has priorities; the number is the highest.",
    Lim: "The queue has a maximum of messages or bytes.",
    Exp: "The broker deletes the queue after this time without use.",
    SAC: "Single active consumer: one consumer gets all messages, the others wait.",
    policy: "Settings that the broker applies to queues or exchanges by their names.",
    channel: "One of several conversations in a connection.",
    heartbeat: "A frame without content, by which both sides see that the connection works.",
    "virtual clock": "A clock of the broker that only the test moves; the second time is real time.",
  };

  function glossary(where) {
    where.replaceChildren(...Object.entries(WORDS).sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
      .map(([word, text]) => element("div", "", element("dt", "", word), element("dd", "", text))));
  }

  // --- a failed test -----------------------------------------------------------------------------------------

  /** What failed: the assertion, and the source of the test with the line that failed. */
  function failed(failure) {
    const source = element("pre", "source", ...failure.source.map((line, at) => {
      const made = element("span", failure.first + at === failure.line ? "line here" : "line", element("i", "", String(failure.first + at)), ...seen(`${line}\n`));
      if (failure.first + at === failure.line) made.setAttribute("aria-current", "true");
      return made;
    }));
    source.tabIndex = 0;
    source.setAttribute("aria-label", "Source of the test");
    const text = element("pre", "assertion", ...seen(failure.text));
    text.tabIndex = 0;
    text.setAttribute("aria-label", "Assertion");
    return [section("Assertion", "", text), ...(failure.source.length ? [section("Source", `${failure.file}:${failure.line}`, source)] : [])];
  }

  // --- colours -----------------------------------------------------------------------------------------------

  function kept(name, value) {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch { /* a page from a file may not have it */ }
    return null;
  }

  const THEMES = ["auto", "light", "dark"];

  function theme(name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    $("theme").textContent = name[0].toUpperCase() + name.slice(1);
    $("theme").setAttribute("aria-label", `Colours: ${name}`);
    $("theme").dataset.theme = name;
  }

  /** Make the button choose colours; `changed` is called after each change. */
  function colours(changed = () => {}) {
    theme(THEMES.includes(kept("fakeamqp-theme")) ? kept("fakeamqp-theme") : "auto");
    $("theme").addEventListener("click", () => {
      const next = THEMES[(THEMES.indexOf($("theme").dataset.theme) + 1) % THEMES.length];
      theme(next);
      kept("fakeamqp-theme", next);
      changed();
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  }

  return { $, root, element, button, number, many, plainly, seen, span, seconds, octets, preview, section, table, bodySection, story, WORDS, glossary, failed, kept, theme, THEMES, colours };
})();
