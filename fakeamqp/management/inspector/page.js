// The policy forbids markup made from text.
(() => {
  const TABS = [["topology", "Topology"], ["queues", "Queues"], ["messages", "Messages"], ["connections", "Connections"], ["timeline", "Timeline"], ["time", "Time"], ["faults", "Faults"], ["publish", "Publish"]];
  const KINDS = [["method", "Methods"], ["frame", "Other frames"], ["heartbeat", "Heartbeats"], ["model", "Model"], ["connection", "Connections"], ["fault", "Faults"]];
  const OVERSCAN = 8;        // rows made beyond what is visible
  const MOST_LINES = 5000;   // lines of the timeline that the page keeps
  const WINDOW = 100;        // messages fetched at once
  const QUEUES_IN_GRAPH = 60;
  const CONSUMERS_OF_QUEUE = 4;
  const LABELS_OF_QUEUE = 4;

  const { $, root, element, button, number, many, plainly, seen, span, preview, section, table, bodySection, story, WORDS, glossary, failed, kept, colours } = parts;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  // --- helpers --------------------------------------------------------------------------------------------

  function svg(tag, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = plainly(text);
    return made;
  }

  function bytes(value) {
    if (value < 10000) return many(value, "byte");
    return value < 1e7 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 1048576).toFixed(1)} MiB`;
  }

  /** A short mark that something has changed. */
  function flash(what) {
    if (calm.matches || document.hidden) return;
    what.animate([{ backgroundColor: getComputedStyle(root).getPropertyValue("--pick") }, { backgroundColor: "transparent" }], { duration: 700, easing: "ease-out" });
  }

  /** Set a text if it differs; returns whether it did. */
  function put(where, text) {
    if (where.textContent === text) return false;
    where.textContent = text;
    return true;
  }

  // --- the broker -----------------------------------------------------------------------------------------

  const store = {
    broker: {}, time: { timers: [] }, exchanges: new Map(), bindings: new Map(), queues: new Map(), consumers: new Map(),
    connections: new Map(), faults: new Map(), flows: new Map(), rates: new Map(), clock: 0, clockAt: performance.now(),
  };
  const SECTIONS = ["exchanges", "bindings", "queues", "consumers", "connections", "faults", "flows", "rates"];
  const state = {
    tab: "topology", paused: false, host: null, graphQueues: QUEUES_IN_GRAPH, selected: null, sort: ["", 1], token: "", login: "",
    kinds: new Set(KINDS.keys()), structure: true, outcome: "published", found: null, peers: new Set(), known: false,
  };
  const lines = { all: [], shown: [], skipped: 0, heard: new Map(), next: 0, clears: "" };
  const hotRoutes = new Map();   // key of a route or an exchange: when its count last rose

  class Problem extends Error {
    constructor(text, status) { super(text); this.status = status; }
  }

  const authorization = () => (state.login ? `Basic ${state.login}` : `Bearer ${state.token}`);

  /** Send a request; returns its answer, or undefined if it has none. */
  async function call(method, path, body) {
    const sent = { method, headers: { authorization: authorization() }, credentials: "omit" };
    if (body !== undefined) { sent.body = JSON.stringify(body); sent.headers["content-type"] = "application/json"; }
    let answer;
    try {
      answer = await fetch(path, sent);
    } catch {
      throw new Problem("The broker does not answer. Has it stopped?", 0);
    }
    const data = answer.status === 204 ? undefined : (answer.headers.get("content-type") || "").startsWith("application/json") ? await answer.json() : await answer.text();
    if (!answer.ok) throw new Problem((data && data.reason) || `The broker answered with ${answer.status}.`, answer.status);
    return data;
  }

  const ask = (name, body = {}) => call("POST", `ask/${name}`, body);
  /** Ask about the broker as it is now, which a paused page does not show. */
  const askNow = (name, body) => (state.paused ? Promise.reject(new Problem("The page is paused, and this was not loaded before. Go on to see it.", 0)) : ask(name, body));
  /** The end of what a paused page knows of the timeline. */
  const until = () => (state.paused ? lines.next : null);
  const control = (method, path, body) => call(method, `../control/v1/${path}`, body);
  /** A name in a path. A lone surrogate stands for an octet that is not UTF-8. */
  const quoted = (name) => name.split(/((?<![\ud800-\udbff])[\udc80-\udcff])/).map((part, at) => (at % 2 ? `%${(part.charCodeAt(0) - 0xdc00).toString(16)}` : encodeURIComponent(part))).join("");

  /** Do something, and say what came of it; a problem goes to `where`, or to the status line. */
  async function act(done, sentence, where) {
    if (where) put(where, "");
    try {
      const said = sentence(await done);
      say(said);
      return said;
    } catch (problem) {
      if (where) put(where, plainly(problem.message)); else say(problem.message, true);
      return null;
    }
  }

  let saying = 0;
  function say(text, bad = false) {
    clearTimeout(saying);
    $("said").className = bad ? "said bad" : "said";
    put($("said"), plainly(text));
    saying = setTimeout(() => put($("said"), ""), bad ? 12000 : 6000);
  }

  function take(kind, data) {
    const now = performance.now();
    if (kind === "state") {
      for (const section of SECTIONS) store[section] = new Map(Object.entries(data[section] || {}));
      state.structure = true;
      store.broker = data.broker;
      store.time = data.time;
      Object.assign(WORDS, data.words);
      if (!usable(state.tab)) show("connections", false);
    } else {
      for (const section of SECTIONS) {
        if (!data[section]) continue;
        const rows = store[section];
        for (const key of data[section].gone) rows.delete(key);
        for (const [key, row] of Object.entries(data[section].set)) {
          const old = rows.get(key);
          if (section === "flows") {
            if (row > (old || 0)) hotRoutes.set(key, now);
            if (old === undefined && "rp".includes(key[0]) && !(graph && graph.known.has(key))) state.structure = true;
          } else if (section !== "connections" && section !== "faults" && section !== "rates" && (!old || section === "bindings" || section === "exchanges" || old.dead_letter_exchange !== row.dead_letter_exchange)) {
            state.structure = true;
          }
          rows.set(key, row);
        }
        if (data[section].gone.length && section !== "faults" && section !== "rates") state.structure = true;
      }
      if (data.broker) store.broker = data.broker;
      if (data.time) store.time = data.time;
    }
    if (data.clock !== undefined) { store.clock = data.clock; store.clockAt = now; }
    if (data.timeline) takeLines(data.timeline);
    if (!state.known) { state.known = true; follow(); }
    schedule();
    messagesMayHaveChanged(data);
  }

  /** The instant of the broker's clock. */
  function instant() {
    const { mode, rate } = store.time;
    return mode === "real" ? store.clock + ((performance.now() - store.clockAt) / 1000) * (rate ?? 1) : store.clock;
  }

  let scheduled = false;
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; render(); });
  }

  function render() {
    renderTop();
    RENDER[state.tab]();
    renderDetail();
    document.body.dataset.rendered = String(Number(document.body.dataset.rendered || 0) + 1);
  }

  // --- the event stream -----------------------------------------------------------------------------------

  const wait = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

  function live(how, text) {
    $("live").className = `live ${how}`;
    put($("live-text"), text);
  }

  let stream = null, goOn = () => {};

  /** Follow the broker. A paused page has no stream, so nothing new reaches it; it goes on where it was. */
  async function listen() {
    for (;;) {
      if (state.paused) { live("on", "Paused"); await new Promise((done) => { goOn = done; }); }
      try {
        stream = new AbortController();
        const answer = await fetch(`events?serial=${lines.next}&clears=${lines.clears}`, { headers: { authorization: authorization(), accept: "text/event-stream" }, credentials: "omit", cache: "no-store", signal: stream.signal });
        if (answer.status === 401 || answer.status === 403) {
          const { reason } = await answer.json();
          live("lost", "Not logged in");
          await logIn(reason);
          continue;
        }
        if (!answer.ok) throw new Problem((await answer.json()).reason || "", answer.status);
        live("on", "Live");
        await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
      } catch { /* tried again below */ }
      if (state.paused) continue;
      live("lost", "Connection lost, trying again");
      await wait(1000);
    }
  }

  async function read(reader) {
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop();
      for (const event of events) {
        let kind = "message", data = "";
        for (const line of event.split("\n")) {
          if (line.startsWith("event: ")) kind = line.slice(7);
          else if (line.startsWith("data: ")) data += line.slice(6);
        }
        if (data) take(kind, JSON.parse(data));
      }
    }
  }

  function logIn(why) {
    return new Promise((done) => {
      put($("login-text"), plainly(why));
      if (!$("login").open) $("login").showModal();
      $("login-form").onsubmit = (event) => {
        event.preventDefault();
        const octets = new TextEncoder().encode(`${$("login-name").value}:${$("login-password").value}`);
        state.login = btoa(String.fromCharCode(...octets));
        $("login-password").value = "";
        $("login").close();
        done();
      };
    });
  }
  $("login").addEventListener("cancel", (event) => event.preventDefault());

  // --- lists: only rows that are near the visible ones are in the document ---------------------------------

  class List {
    /** `make(item, at)` makes a row, `label(item)` says it; `key(item)` stays the same while an item changes. */
    constructor(where, { height, make, label, key, open, get }) {
      Object.assign(this, { where, height, make, label, key, open });
      this.items = [];
      this.count = 0;
      this.get = get || ((at) => this.items[at]);
      this.rows = new Map();   // place: [item, element]
      this.picked = null;      // key
      this.at = -1;            // place of the picked item when it was picked
      this.canvas = element("div", "canvas");
      this.canvas.setAttribute("role", "presentation");
      this.id = where.id || `list${List.made = (List.made || 0) + 1}`;
      where.append(this.canvas);
      let waiting = false;
      where.addEventListener("scroll", () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; this.draw(); });
      }, { passive: true });
      where.addEventListener("click", (event) => {
        const row = event.target.closest(".row");
        if (row) this.pick(Number(row.dataset.at), true);
      });
      where.addEventListener("keydown", (event) => this.press(event));
      new ResizeObserver(() => this.draw()).observe(where);
    }

    set(items) {
      this.items = items;
      this.size(items.length);
    }

    size(count) {
      if (count !== this.count) this.canvas.style.height = `${count * this.height}px`;
      this.count = count;
      this.draw();
    }

    place() {
      if (this.picked === null) return -1;
      const here = this.get(this.at);
      if (here && this.key(here) === this.picked) return this.at;
      this.at = this.items.findIndex((item) => item && this.key(item) === this.picked);
      return this.at;
    }

    draw(afresh = false) {
      if (!this.where.clientHeight) return;
      const first = Math.max(0, Math.floor(this.where.scrollTop / this.height) - OVERSCAN);
      const last = Math.min(this.count, Math.ceil((this.where.scrollTop + this.where.clientHeight) / this.height) + OVERSCAN);
      const chosen = this.place();
      for (const [at, [, row]] of this.rows) {
        // The chosen row stays, because assistive technology refers to its id.
        if ((at < first || at >= last) && at !== chosen) { row.remove(); this.rows.delete(at); }
      }
      const added = document.createDocumentFragment();
      const add = (at) => {
        const item = this.get(at), old = this.rows.get(at);
        if (old && old[0] === item && !afresh) return;
        const row = item ? this.make(item, at, old && old[0] && item && this.key(old[0]) === this.key(item) ? old[0] : null) : element("div", "row");
        row.classList.add("row");
        row.id = `${this.id}-${at}`;
        row.dataset.at = at;
        row.setAttribute("role", "option");
        row.setAttribute("aria-setsize", this.count);
        row.setAttribute("aria-posinset", at + 1);
        row.setAttribute("aria-label", item ? plainly(this.label(item)) : "loading");
        row.style.top = `${at * this.height}px`;
        if (old) old[1].replaceWith(row); else added.append(row);
        this.rows.set(at, [item, row]);
      };
      for (let at = first; at < last; at += 1) add(at);
      if (chosen >= 0 && chosen < this.count) add(chosen);
      this.canvas.append(added);
      for (const [at, [, row]] of this.rows) {
        const picked = at === chosen;
        row.classList.toggle("picked", picked);
        row.setAttribute("aria-selected", picked);
      }
      if (chosen >= 0) this.where.setAttribute("aria-activedescendant", `${this.id}-${chosen}`);
      else this.where.removeAttribute("aria-activedescendant");
      this.where.dataset.count = this.count;
    }

    pick(at, open = false) {
      const item = this.get(at);
      if (at < 0 || at >= this.count) return;
      if (!item) { this.reveal(at); return; }
      this.picked = this.key(item);
      this.at = at;
      this.reveal(at);
      this.draw();
      if (open && this.open) this.open(item, at);
    }

    unpick() {
      this.picked = null;
      this.draw();
    }

    reveal(at) {
      const top = at * this.height;
      if (top < this.where.scrollTop) this.where.scrollTop = top;
      else if (top + this.height > this.where.scrollTop + this.where.clientHeight) this.where.scrollTop = top + this.height - this.where.clientHeight;
    }

    press(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.where || !this.count) return;
      const at = this.place(), page = Math.max(1, Math.floor(this.where.clientHeight / this.height) - 1);
      const from = at < 0 ? Math.floor(this.where.scrollTop / this.height) - 1 : at;
      const to = { ArrowDown: from + 1, ArrowUp: Math.max(0, from - 1), PageDown: from + page, PageUp: from - page, Home: 0, End: this.count - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        state.moving = true;   // Back does not return to each row on the way.
        this.pick(Math.max(0, Math.min(this.count - 1, to)), state.selected !== null && this.follows);
        state.moving = false;
      } else if (event.key === "Enter" && at >= 0) {
        event.preventDefault();
        this.open(this.get(at), at);
        $("detail").focus();
      }
    }
  }

  /** A list of messages, which are fetched where they are looked at. */
  class Fetched {
    /** `question()` is what is asked: its name and its fields. `told(total, answer)` hears what came. */
    constructor(where, { height, question, make, label, open, told }) {
      Object.assign(this, { question, told });
      this.got = new Map();
      this.busy = this.ended = false;
      this.stale = true;
      this.list = new List(where, { height, get: (at) => this.at(at), key: (item) => item.key, label, make, open });
      this.list.follows = true;
    }

    at(at) {
      const item = this.got.get(at);
      if (!item && !this.stale && at < this.list.count) { this.missing = true; queueMicrotask(() => this.fetch()); }
      return item;
    }

    /** Fetch what is visible, if it is not known or may have changed. One request at a time. */
    async fetch() {
      if (this.busy || this.ended || !(this.stale || this.missing)) return;
      this.busy = true;
      const afresh = this.stale;
      this.stale = this.missing = false;
      const { where, height } = this.list;
      const first = Math.max(0, Math.floor(where.scrollTop / height + where.clientHeight / height / 2) - WINDOW / 2);
      try {
        const [name, asked, send] = this.question();
        const answer = await send(name, { ...asked, start: first, count: WINDOW });
        const { total, start, messages } = answer;
        if (afresh || this.got.size > 20 * WINDOW) this.got.clear();
        messages.forEach((message, at) => this.got.set(start + at, message));
        this.list.size(total);
        this.list.draw(true);
        this.told(total, answer);
      } catch (problem) { if (this.failed) this.failed(problem); }
      this.busy = false;
      if (this.stale) setTimeout(() => this.fetch(), 250); else if (this.missing && !state.paused) this.fetch();
    }

    changed() {
      this.stale = true;
      if (!this.busy) setTimeout(() => this.fetch(), 0);
    }
  }

  const cell = (name, text) => element("span", name, ...(typeof text === "string" ? seen(text) : [text]));
  const count = (value) => cell(value ? "n" : "n zero", number(value));

  // --- the top ---------------------------------------------------------------------------------------------

  const badges = {};

  function buildTabs() {
    TABS.forEach(([name, title], at) => {
      const badge = element("i", "");
      const tab = button(title, "tab", () => show(name));
      tab.append(badge);
      tab.id = `tab-${name}`;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", "panel");
      tab.setAttribute("aria-keyshortcuts", String(at + 1));
      badges[name] = badge;
      $("tabs").append(tab);
    });
    $("tabs").addEventListener("keydown", (event) => {
      const shown = TABS.map(([name]) => name).filter(usable), at = shown.indexOf(state.tab);
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: shown.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const name = shown[(to + shown.length) % shown.length];
      show(name);
      $(`tab-${name}`).focus();
    });
  }

  /** Show a view; `visited` is that of `remember`, or null if the address is written later. */
  function show(name, visited = true) {
    state.tab = name;
    if (state.selected && ["event", "failure"].includes(state.selected.kind) && name !== "timeline") close();
    for (const [each] of TABS) {
      const chosen = each === name;
      $(`view-${each}`).hidden = !chosen;
      const tab = $(`tab-${each}`);
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    $("panel").setAttribute("aria-labelledby", `tab-${name}`);
    $("panel").parentNode.classList.toggle("over", name === "topology");
    document.title = `${TABS.find(([each]) => each === name)[1]} - fakeamqp inspector`;
    if (name === "faults" || name === "publish") prepareForms();
    if (visited !== null) remember(visited);
    render();
  }

  const statParts = new Map();
  function stat(name, value) {
    let part = statParts.get(name);
    if (!part) {
      part = element("dd", "");
      statParts.set(name, part);
      $("stats").append(element("div", "", element("dt", "", name), part));
    }
    put(part, plainly(value));
  }

  /** The views that a proxy has no part in, by what it cannot do. */
  const NEEDS = { topology: "explain", queues: "queues", messages: "queues", time: "clock", publish: "publish" };
  const usable = (tab) => !(store.broker.impossible || []).includes(NEEDS[tab]);

  function renderTop() {
    const { broker, time } = store;
    put($("title"), plainly(broker.held ? broker.held : broker.address || "Broker"));
    for (const [name] of TABS) $(`tab-${name}`).hidden = !usable(name);
    if (broker.behind) {
      stat("Proxy to", broker.behind);
    } else if (broker.personality) {
      if (broker.held) stat("Address", broker.address || "");
      stat("Behaviour", broker.personality);
      stat("Clock", time.mode || "");
      let ready = 0, unacked = 0;
      for (const queue of store.queues.values()) { ready += queue.ready; unacked += queue.unacked; }
      stat("Ready", number(ready));
      stat("Unacked", number(unacked));
    }
    put(badges.queues, number(store.queues.size));
    put(badges.messages, number((broker.histories || {}).published || 0));
    put(badges.connections, number(store.connections.size));
    put(badges.faults, store.faults.size ? number(store.faults.size) : "");
    put(badges.time, time.timers.length ? number(time.timers.length + (time.more || 0)) : "");
    const alarm = broker.blocked ? `Publishers are blocked: ${broker.blocked}` : broker.running === false ? "The broker is stopped." : "";
    $("alarm").hidden = !alarm;
    put($("alarm"), plainly(alarm));
    $("held").hidden = !broker.held;
    if (broker.held) put($("held-text"), plainly(`A failed test is held open: ${broker.held}`));
    $("to-failure").hidden = !broker.failure;
  }

  // --- topology ---------------------------------------------------------------------------------------------

  const ROW = 44, GAP = 12, EXCHANGE = 176, QUEUE = 228, CONSUMER = 196, KEYS = 146, FEED = 44, EDGE = 24;
  const nodes = new Map();     // id: {el, kind, x, y, w, h, ...}
  let paths = [];              // {el, from, to, route}
  let drawn = { width: 0, height: 0 };

  const inHost = (row) => row.virtual_host === state.host;
  const isPredeclared = (name) => name === "" || name.startsWith("amq.");

  function chooseHost() {
    const hosts = store.broker.virtual_hosts || [];
    if (!hosts.includes(state.host)) state.host = hosts[0] ?? null;
    for (const select of [$("hosts"), $("publish-host")]) {
      const known = [...select.options].map((option) => option.value);
      if (known.join("\0") !== hosts.join("\0")) {
        select.replaceChildren(...hosts.map((name) => { const made = element("option", "", plainly(name)); made.value = name; return made; }));
      }
    }
    $("hosts-label").hidden = hosts.length < 2;
    $("publish-host-label").hidden = hosts.length < 2;
    $("hosts").value = state.host;
  }

  /** Which nodes and edges the graph has, without places. */
  function graphOf() {
    const wanted = $("graph-filter").value.toLowerCase();
    const all = $("predeclared").checked;
    const exchanges = new Map(), queues = new Map();
    const bound = new Set(), into = new Map();
    for (const binding of store.bindings.values()) {
      bound.add(binding.source);
      const to = (binding.kind === "queue" ? "q" : "e") + binding.destination;
      if (!into.has(to)) into.set(to, []);
      into.get(to).push(binding);
      if (binding.kind === "exchange") bound.add(binding.destination);
    }
    const byName = new Map();
    for (const [key, row] of store.exchanges) if (inHost(row)) byName.set(row.name, key);
    const mentioned = new Set();
    for (const row of store.queues.values()) if (inHost(row) && row.dead_letter_exchange !== undefined) mentioned.add(row.dead_letter_exchange);
    for (const [key, row] of store.exchanges) {
      if (!inHost(row)) continue;
      const used = !isPredeclared(row.name) || bound.has(key) || store.flows.has(`p${key}`) || store.flows.has(`d${key}`) || (mentioned.has(row.name) && row.name !== "");
      if (used || all) exchanges.set(key, row);
    }
    const fits = (row) => row.name.toLowerCase().includes(wanted);
    let total = 0;
    for (const [key, row] of store.queues) {
      if (!inHost(row)) continue;
      const sources = into.get(`q${key}`) || [];
      if (wanted && !fits(row) && !sources.some((binding) => exchanges.has(binding.source) && fits(exchanges.get(binding.source)))) continue;
      total += 1;
      if (queues.size < state.graphQueues) queues.set(key, row);
    }
    if (wanted) {
      const kept = new Set();
      for (const key of queues.keys()) for (const binding of into.get(`q${key}`) || []) kept.add(binding.source);
      for (const [key, row] of exchanges) if (!fits(row) && !kept.has(key)) exchanges.delete(key);
    }
    const edges = [];
    const known = new Set([...exchanges.keys()].map((key) => `p${key}`));   // counts that do not change what is drawn
    for (const binding of store.bindings.values()) {
      if (binding.kind === "queue") known.add(`r${binding.source.length} ${binding.source}${binding.destination}`);
      if (!exchanges.has(binding.source)) continue;
      const to = binding.kind === "queue" ? queues.has(binding.destination) && `q${binding.destination}` : exchanges.has(binding.destination) && `e${binding.destination}`;
      if (!to) continue;
      const label = binding.count > 1 ? `${binding.keys[0] || '""'} +${binding.count - 1}` : binding.keys[0] || "";
      edges.push({ from: `e${binding.source}`, to, label, name: "edge", route: `${binding.kind === "queue" ? "r" : "x"}${binding.source.length} ${binding.source}${binding.destination}` });
    }
    const passesOn = new Set([...store.bindings.values()].filter((binding) => binding.kind === "exchange").map((binding) => binding.source));
    for (const [key, row] of exchanges) if (row.alternate_exchange !== undefined) passesOn.add(key);
    const drawnRoutes = new Set(edges.map((edge) => edge.route));
    for (const route of store.flows.keys()) {
      if (route[0] !== "r" || drawnRoutes.has(route)) continue;
      const space = route.indexOf(" "), size = Number(route.slice(1, space));
      const source = route.slice(space + 1, space + 1 + size), target = route.slice(space + 1 + size);
      // Through another exchange they go along the edges that are drawn.
      if (exchanges.has(source) && queues.has(target) && !passesOn.has(source)) edges.push({ from: `e${source}`, to: `q${target}`, label: "", name: "edge implicit", route });
    }
    const missing = new Map();
    const target = (name) => {
      const key = byName.get(name);
      if (key !== undefined) { if (!exchanges.has(key)) exchanges.set(key, store.exchanges.get(key)); return `e${key}`; }
      missing.set(`m${name}`, { name });
      return `m${name}`;
    };
    for (const [key, row] of queues) {
      if (row.dead_letter_exchange === undefined) continue;
      const direct = row.dead_letter_exchange === "" && row.dead_letter_routing_key != null
        ? [...queues].find(([, each]) => each.name === row.dead_letter_routing_key) : undefined;
      edges.push({ from: `q${key}`, to: direct ? `q${direct[0]}` : target(row.dead_letter_exchange), label: "", name: "edge dead", back: true });
    }
    for (const [key, row] of [...exchanges]) {
      if (row.alternate_exchange !== undefined) edges.push({ from: `e${key}`, to: target(row.alternate_exchange), label: "", name: "edge otherwise", back: true });
    }
    const consumers = new Map();
    for (const [key, row] of store.consumers) {
      if (!queues.has(row.queue)) continue;
      if (!consumers.has(row.queue)) consumers.set(row.queue, []);
      consumers.get(row.queue).push([key, row]);
    }
    for (const edge of edges) if (edge.route) known.add(edge.route);
    return { exchanges, queues, missing, edges, consumers, total, known };
  }

  function place(graph) {
    const { exchanges, queues, missing, edges, consumers } = graph;
    const wanted = [];
    const level = new Map([...exchanges.keys()].map((key) => [`e${key}`, 0]));
    const between = edges.filter((edge) => edge.to[0] === "e" && edge.from[0] === "e" && !edge.back);
    for (let turn = 0; turn < Math.min(6, between.length); turn += 1) {
      for (const edge of between) if (edge.from !== edge.to && level.get(edge.to) <= level.get(edge.from) && level.get(edge.from) < 4) level.set(edge.to, level.get(edge.from) + 1);
    }
    const deepest = Math.max(0, ...level.values());
    const order = new Map([...level.keys()].map((id, at) => [id, at]));
    const incoming = new Map();
    for (const edge of edges) if (!edge.back && edge.to[0] === "q") {
      if (!incoming.has(edge.to)) incoming.set(edge.to, []);
      incoming.get(edge.to).push(edge);
    }
    const rank = (id) => Math.min(Infinity, ...(incoming.get(id) || []).map((edge) => order.get(edge.from)));
    const sorted = [...queues.keys()].map((key, at) => [`q${key}`, rank(`q${key}`), at]).sort((a, b) => (a[1] === b[1] ? a[2] - b[2] : a[1] - b[1]));
    const queueX = EDGE + (deepest + 1) * (EXCHANGE + KEYS) + (between.length ? 0 : 0);
    const consumerX = queueX + QUEUE + FEED;
    let y = EDGE;
    const middle = new Map();
    for (const [id] of sorted) {
      const key = id.slice(1), row = queues.get(key);
      const of = consumers.get(key) || [], shown = of.slice(0, of.length > CONSUMERS_OF_QUEUE ? CONSUMERS_OF_QUEUE - 1 : CONSUMERS_OF_QUEUE);
      const edgesIn = incoming.get(id) || [];
      const height = Math.max(ROW, 10 + 15 * Math.min(edgesIn.length, LABELS_OF_QUEUE));
      const block = Math.max(height, (shown.length + (of.length > shown.length ? 1 : 0)) * 40 - 6);
      wanted.push({ id, kind: "queue", key, row, x: queueX, y: y + (block - height) / 2, w: QUEUE, h: height });
      middle.set(id, y + block / 2);
      const begin = y + (block - (shown.length * 40 - 6 + (of.length > shown.length ? 24 : 0))) / 2;
      shown.forEach(([each, consumer], at) => wanted.push({ id: `c${each}`, kind: "consumer", key: each, row: consumer, x: consumerX, y: begin + at * 40, w: CONSUMER, h: 34 }));
      if (of.length > shown.length) wanted.push({ id: `x${key}`, kind: "more", text: `and ${many(of.length - shown.length, "more consumer")}`, x: consumerX + 8, y: begin + shown.length * 40, w: CONSUMER, h: 20 });
      edgesIn.forEach((edge, at) => {
        edge.port = height / 2 + (Math.min(at, LABELS_OF_QUEUE - 1) - (Math.min(edgesIn.length, LABELS_OF_QUEUE) - 1) / 2) * 15;
        if (at >= LABELS_OF_QUEUE) edge.label = "";
      });
      y += block + GAP;
    }
    let bottom = y;
    // Each exchange stands beside the middle of what it routes to; the deepest column first.
    const columns = [];
    for (const [id, depth] of level) (columns[depth] ||= []).push(id);
    for (let depth = deepest; depth >= 0; depth -= 1) {
      const column = (columns[depth] || []).map((id, at) => {
        const targets = edges.filter((edge) => edge.from === id && !edge.back && middle.has(edge.to)).map((edge) => middle.get(edge.to));
        return [id, targets.length ? targets.reduce((a, b) => a + b, 0) / targets.length : Infinity, at];
      }).sort((a, b) => (a[1] === b[1] ? a[2] - b[2] : a[1] - b[1]));
      let free = EDGE;
      for (const [id, ideal] of column) {
        const top = Math.max(free, Number.isFinite(ideal) ? ideal - ROW / 2 : free);
        wanted.push({ id, kind: "exchange", key: id.slice(1), row: exchanges.get(id.slice(1)), x: EDGE + depth * (EXCHANGE + KEYS), y: top, w: EXCHANGE, h: ROW });
        middle.set(id, top + ROW / 2);
        free = top + ROW + GAP;
      }
      bottom = Math.max(bottom, free);
    }
    for (const [id, row] of missing) {
      wanted.push({ id, kind: "missing", key: id, row, x: EDGE, y: bottom, w: EXCHANGE, h: ROW });
      bottom += ROW + GAP;
    }
    const width = (consumers.size ? consumerX + CONSUMER : queueX + QUEUE) + EDGE + 20;
    return { wanted, width, height: bottom + EDGE };
  }

  let specs = new Map();       // id: the place of a node, whether it is in the document or not
  let graph = null;

  function buildGraph() {
    state.structure = false;
    chooseHost();
    graph = graphOf();
    const { wanted, width, height } = place(graph);
    drawn = { width, height };
    specs = new Map(wanted.map((spec) => [spec.id, spec]));
    graph.feeds = [];
    for (const [queue, of] of graph.consumers) for (const [key] of of) graph.feeds.push({ from: `q${queue}`, to: `c${key}`, label: "", name: "edge feed", route: "" });
    if (!zoom) zoomTo(Math.max(0.6, Math.min(1, ($("graph").clientWidth || width) / width)));
    sized();
    $("edges").setAttribute("width", width);
    $("edges").setAttribute("height", height);
    put($("graph-shown"), `${many(graph.exchanges.size, "exchange")}, ${graph.total > graph.queues.size ? `${number(graph.queues.size)} of ${many(graph.total, "queue")}` : many(graph.total, "queue")}`);
    $("more-queues").hidden = graph.total <= graph.queues.size;
    put($("more-queues"), `Show ${number(Math.min(graph.total - graph.queues.size, 200))} more`);
    const empty = !specs.size;
    $("graph").hidden = empty;
    $("graph-empty").hidden = !empty;
    if (empty) put($("graph-empty"), $("graph-filter").value ? "No exchange or queue has this name." : emptyText());
    reached = { top: -1, bottom: -1 };
    drawNear();
  }

  // --- zoom: the stage is scaled, and the sheet around it has the scaled size, so that it scrolls --------------

  let zoom = 0;

  function sized() {
    const { width, height } = drawn;
    $("stage").style.width = `${width}px`;
    $("stage").style.height = `${height}px`;
    $("stage").style.transform = `scale(${zoom})`;
    $("sheet").style.width = `${width * zoom}px`;
    $("sheet").style.height = `${height * zoom}px`;
  }

  /** Scale the picture; the point at `x`, `y` of the window onto it stays where it is. */
  function zoomTo(value, x = $("graph").clientWidth / 2, y = $("graph").clientHeight / 2) {
    const before = zoom || 1, pane = $("graph");
    const [left, top] = [(pane.scrollLeft + x) / before, (pane.scrollTop + y) / before];
    zoom = Math.max(0.2, Math.min(2, value));
    put($("zoom"), `${Math.round(zoom * 100)} %`);
    sized();
    pane.scrollLeft = left * zoom - x;
    pane.scrollTop = top * zoom - y;
    reached = { top: -1, bottom: -1 };
    if (graph) { drawNear(); markEdges(); }
  }

  // The pane lies over the picture, below its controls.
  new ResizeObserver(([bar]) => { if (bar.target.offsetHeight) $("panel").parentNode.style.setProperty("--bar", `${bar.target.offsetHeight}px`); }).observe(document.querySelector("#view-topology .bar"));

  const fitted = () => Math.min(1, $("graph").clientWidth / drawn.width, $("graph").clientHeight / drawn.height);
  $("zoom-in").addEventListener("click", () => zoomTo(zoom * 1.25));
  $("zoom-out").addEventListener("click", () => zoomTo(zoom / 1.25));
  $("zoom").addEventListener("click", () => zoomTo(1));
  $("fit").addEventListener("click", () => { zoomTo(fitted()); $("graph").scrollTo(0, 0); });
  $("graph").addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = $("graph").getBoundingClientRect();
    zoomTo(zoom * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  // The ground between the nodes can be dragged.
  let dragged = null;
  $("graph").addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" || event.target.closest(".node")) return;
    dragged = { x: event.clientX + $("graph").scrollLeft, y: event.clientY + $("graph").scrollTop };
    $("graph").setPointerCapture(event.pointerId);
  });
  $("graph").addEventListener("pointermove", (event) => { if (dragged) $("graph").scrollTo(dragged.x - event.clientX, dragged.y - event.clientY); });
  for (const end of ["pointerup", "pointercancel"]) $("graph").addEventListener(end, () => { dragged = null; });

  let reached = { top: -1, bottom: -1 };   // what part of the graph is in the document

  /** Make the nodes and edges that are near the visible part, and remove the others. */
  function drawNear() {
    const top = $("graph").scrollTop / zoom, height = ($("graph").clientHeight || 800) / zoom;
    if (top >= reached.top + 100 && top + height <= reached.bottom - 100) return;
    reached = { top: top < 500 ? -200 : top - 400, bottom: top + height + 400 };
    const focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : "";
    const near = (spec) => spec.y + spec.h >= reached.top && spec.y <= reached.bottom;
    for (const [id, node] of nodes) {
      const spec = specs.get(id);
      if (!spec || (!near(spec) && id !== focus)) { node.el.remove(); nodes.delete(id); }
    }
    const added = [];
    for (const spec of specs.values()) {
      let node = nodes.get(spec.id);
      if (!node) {
        if (!near(spec)) continue;
        node = { el: makeNode(spec) };
        nodes.set(spec.id, node);
        added.push(node);
      }
      Object.assign(node, spec);
      node.el.style.transform = `translate(${spec.x}px, ${spec.y}px)`;
      node.el.style.width = `${spec.w}px`;
      node.el.style.height = `${spec.h}px`;
    }
    // In the order of columns and rows, for screen readers.
    added.sort((a, b) => a.x - b.x || a.y - b.y);
    $("stage").append(...added.map((node) => node.el));
    for (const node of added) renderNode(node);
    const visible = (id) => { const spec = specs.get(id); return spec !== undefined && near(spec); };
    // An edge to an exchange far away is drawn as far as its end that is near; most are of a queue.
    drawEdges([...graph.edges, ...graph.feeds].filter((edge) => (edge.to[0] === "q" ? visible(edge.to) : visible(edge.from) || visible(edge.to))));
    roving();
  }
  let scrolling = false;
  $("graph").addEventListener("scroll", () => {
    if (scrolling) return;
    scrolling = true;
    requestAnimationFrame(() => { scrolling = false; drawNear(); markEdges(); });
  }, { passive: true });
  new ResizeObserver(() => { if (graph && state.tab === "topology") { drawNear(); markEdges(); } }).observe($("graph"));

  const emptyText = () => plainly(`No queues yet. Connect a client to ${store.broker.address || "the broker"}, or publish a message here.`);

  function makeNode(spec) {
    if (spec.kind === "more") return element("span", "more", spec.text);
    const made = button("", `node ${spec.kind}`, () => { if (spec.kind !== "missing") select(spec.kind, spec.key); });
    made.dataset.id = spec.id;
    made.tabIndex = -1;
    made.title = plainly(spec.row.name ?? spec.row.tag);
    const title = element("b", ""), sub = element("small", "");
    made.append(element("span", "what", title, sub));
    const counts = [];
    const add = (name) => {
      const value = element("b", "");
      const part = element("span", "count", value, name);
      counts.push([part, value]);
      made.append(part);
    };
    if (spec.kind === "exchange") add("in");
    if (spec.kind === "queue") { add("ready"); add("unacked"); }
    if (spec.kind === "consumer") add("unacked");
    made.parts = { title, sub, counts };
    return made;
  }

  const lasting = (value) => (value < 120 ? `${+value.toFixed(3)} s` : span(value));
  /** The marks of a queue, as RabbitMQ's page has them, each with its explanation. */
  const features = (row) => [
    row.type !== "classic" && [row.type, `A queue of type ${row.type}`], !row.durable && ["transient", "The queue does not survive a restart."],
    row.exclusive && ["exclusive", "Only one connection uses the queue, and it ends with it."], row.auto_delete && ["auto-delete", "The queue is deleted with its last consumer."],
    row.message_ttl !== undefined && [`TTL ${lasting(row.message_ttl)}`, WORDS.TTL], row.expires !== undefined && [`Exp ${lasting(row.expires)}`, WORDS.Exp],
    row.dead_letter_exchange !== undefined && [`DLX ${row.dead_letter_exchange || "(default)"}`, WORDS.DLX], row.dead_letter_routing_key != null && [`DLK ${row.dead_letter_routing_key}`, WORDS.DLK],
    row.max_priority !== undefined && [`Pri ${row.max_priority}`, WORDS.Pri],
    (row.max_length !== undefined || row.max_length_bytes !== undefined) && [`Lim ${[row.max_length !== undefined && number(row.max_length), row.max_length_bytes !== undefined && bytes(row.max_length_bytes)].filter(Boolean).join(", ")}`, WORDS.Lim],
    row.single_active_consumer && ["SAC", WORDS.SAC], row.policy && [`policy ${row.policy}`, WORDS.policy],
  ].filter(Boolean);
  const flags = (row) => [row.type !== "classic" && row.type, !row.durable && "transient", row.exclusive && "exclusive", row.auto_delete && "auto-delete", row.policy && `policy ${row.policy}`].filter(Boolean);

  function renderNode(node) {
    const { parts } = node.el;
    if (!parts) { put(node.el, node.text); return; }
    let name, sub, values, label;
    if (node.kind === "exchange") {
      const row = store.exchanges.get(node.key) || node.row;
      const [published, dead, passed, unrouted] = ["p", "d", "i", "u"].map((letter) => store.flows.get(letter + node.key) || 0);
      name = row.name || "(default)";
      sub = [row.type, dead && many(dead, "dead letter"), passed && `${number(passed)} from exchanges`, row.alternate_exchange !== undefined && `otherwise to ${row.alternate_exchange}`, row.delayed && `${number(row.delayed)} delayed`, unrouted && `${number(unrouted)} unroutable`].filter(Boolean).join(", ");
      values = [published + dead + passed];
      label = `exchange ${name}, ${sub}, ${many(published, "message")} published`;
    } else if (node.kind === "queue") {
      const row = store.queues.get(node.key) || node.row;
      name = row.name;
      const dead = row.dead_letter_exchange === undefined ? "" : row.dead_letter_exchange === "" ? `dead letters to ${row.dead_letter_routing_key ?? "its own name"}` : `dead letters to ${row.dead_letter_exchange}`;
      sub = [...flags(row), row.set_aside && `${number(row.set_aside)} set aside`, dead].filter(Boolean).join(", ") || (row.consumers ? many(row.consumers, "consumer") : "no consumer");
      values = [row.ready, row.unacked];
      label = `queue ${name}, ${number(row.ready)} ready, ${number(row.unacked)} unacked, ${many(row.consumers, "consumer")}${dead ? `, ${dead}` : ""}`;
    } else if (node.kind === "consumer") {
      const row = store.consumers.get(node.key) || node.row;
      const connection = store.connections.get(row.connection);
      name = row.tag;
      sub = [connection ? connection.called || connection.alias || connection.name : row.connection, row.channel !== null && `channel ${row.channel}`, row.no_ack ? "no ack" : row.prefetch ? `prefetch ${row.prefetch}` : ""].filter(Boolean).join(", ");
      values = [row.unacked ?? 0];
      label = `consumer ${name} on ${sub}, ${number(row.unacked ?? 0)} unacked`;
    } else {
      name = node.row.name;
      sub = "does not exist";
      values = [];
      label = `exchange ${name}, which does not exist`;
    }
    put(parts.title, plainly(name));
    put(parts.sub, plainly(sub));
    values.forEach((value, at) => {
      const [part, text] = parts.counts[at];
      const before = text.textContent;
      if (put(text, number(value))) {
        part.classList.toggle("zero", !value);
        if (before) flash(part);
      }
    });
    node.el.setAttribute("aria-label", plainly(label));
    node.el.setAttribute("aria-pressed", Boolean(state.selected && state.selected.kind === node.kind && state.selected.key === node.key));
  }

  /** The nodes of each column from top to bottom, columns from left to right: what edges go around. */
  function columnsOf() {
    const columns = new Map();
    for (const spec of specs.values()) {
      if (spec.kind === "more") continue;
      if (!columns.has(spec.x)) columns.set(spec.x, []);
      columns.get(spec.x).push(spec);
    }
    for (const column of columns.values()) column.sort((a, b) => a.y - b.y);
    return [...columns].sort((a, b) => a[0] - b[0]);
  }

  /** A height near `y` at which an edge passes a column between its nodes. */
  function passage(column, y) {
    let best = null;
    const near = (lane) => { if (best === null || Math.abs(lane - y) < Math.abs(best - y)) best = lane; };
    let bottom = -Infinity;
    for (const spec of column) {
      if (y > bottom + 3 && y < spec.y - 3) return y;
      if (bottom > -Infinity) near((bottom + spec.y) / 2); else near(spec.y - GAP / 2);
      bottom = spec.y + spec.h;
    }
    if (y > bottom + 3) return y;
    near(bottom + GAP / 2);
    return best;
  }

  /** The path of an edge, which passes every column on its way between nodes. */
  function way(edge, from, to, columns) {
    const low = (spec) => spec.y + spec.h - 9;
    if (to.x === from.x) {
      // In one column: out and in on the left.
      const [x, y1, y2] = [from.x, low(from), to === from ? from.y + 9 : to.y + (edge.port ?? 12)];
      return [`M${x},${y1} C${x - 46},${y1} ${x - 46},${y2} ${x - 1},${y2}`, null];
    }
    const right = to.x > from.x;
    let x = right ? from.x + from.w : from.x, y = right ? from.y + from.h / 2 : low(from);
    const endX = right ? to.x - 1 : to.x + to.w + 1, endY = right ? to.y + (edge.port ?? to.h / 2) : low(to);
    const between = columns.filter(([at]) => (right ? at > from.x && at < to.x : at < from.x && at > to.x));
    if (!right) between.reverse();
    let d = `M${x},${y}`;
    const curve = (x2, y2) => { const bend = (x2 - x) / 2; d += ` C${x + bend},${y} ${x2 - bend},${y2} ${x2},${y2}`; x = x2; y = y2; };
    for (const [at, column] of between) {
      const width = Math.max(...column.map((spec) => spec.w));
      const lane = passage(column, y + ((endY - y) * 0.5));
      const [enter, leave] = right ? [at - 6, at + width + 6] : [at + width + 6, at - 6];
      curve(enter, lane);
      d += ` L${leave},${lane}`;
      x = leave;
    }
    curve(endX, endY);
    return [d, right ? [to.x - 12, endY - 4] : null];
  }

  function drawEdges(edges) {
    const board = $("edges");
    paths = [];
    const made = [], texts = [], columns = columnsOf();
    for (const edge of edges) {
      const from = specs.get(edge.from), to = specs.get(edge.to);
      if (!from || !to) continue;
      const [d, labelAt] = way(edge, from, to, columns);
      const path = svg("path", { d, class: edge.name, "marker-end": `url(#head-${edge.name.split(" ")[1] || "plain"})` });
      made.push(path);
      paths.push({ el: path, from: edge.from, to: edge.to, route: edge.route || "", name: edge.name });
      if (edge.label && labelAt) {
        const short = edge.label.length > 26 ? `${edge.label.slice(0, 25)}\u2026` : edge.label;
        texts.push(svg("text", { x: labelAt[0], y: labelAt[1], "text-anchor": "end", class: "key" }, short));
      }
    }
    board.replaceChildren(heads, ...made, ...texts);
  }

  /** Arrowheads, one for each kind of edge, because a marker has its own colour. */
  const heads = svg("defs", {});
  for (const name of ["plain", "implicit", "dead", "otherwise", "feed"]) {
    const head = svg("marker", { id: `head-${name}`, class: `head ${name}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" });
    head.append(svg("path", { d: "M0,0.5 L8,4 L0,7.5 z" }));
    heads.append(head);
  }

  function renderTopology() {
    if (state.structure || !drawn.width) buildGraph(); else drawNear();
    for (const node of nodes.values()) renderNode(node);
    markEdges();
  }

  /** Mark the edges that messages have just taken, and those of the chosen node. */
  function markEdges() {
    const now = performance.now();
    const chosen = state.selected ? { exchange: "e", queue: "q", consumer: "c" }[state.selected.kind] + state.selected.key : "";
    let hot = false;
    for (const path of paths) {
      const isHot = path.route && now - (hotRoutes.get(path.route) || -9999) < 900;
      hot ||= isHot;
      const name = path.name + (isHot ? " hot" : "") + (chosen && (path.from === chosen || path.to === chosen) ? " near" : "");
      if (path.el.getAttribute("class") !== name) path.el.setAttribute("class", name);
    }
    if (hot && !state.paused) setTimeout(schedule, 950);
  }

  // One node can be reached by the tab key; arrows go on from it.
  function roving(to) {
    const all = [...nodes.values()].filter((node) => node.kind !== "more");
    let current = to || all.find((node) => node.el.tabIndex === 0) || all.filter((node) => node.kind === "queue")[0] || all[0];
    for (const node of all) node.el.tabIndex = node === current ? 0 : -1;
    return current;
  }

  $("stage").addEventListener("keydown", (event) => {
    const here = nodes.get(event.target.dataset ? event.target.dataset.id : "");
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = [...specs.values()].filter((node) => node.kind !== "more" && node.id !== here.id);
    const middle = (node) => node.y + node.h / 2;
    const near = (list, far) => list.sort((a, b) => far(a) - far(b))[0];
    const to = {
      ArrowDown: () => near(all.filter((node) => node.x === here.x && node.y > here.y), (node) => node.y),
      ArrowUp: () => near(all.filter((node) => node.x === here.x && node.y < here.y), (node) => -node.y),
      ArrowRight: () => near(all.filter((node) => node.x > here.x), (node) => (node.x - here.x) * 10 + Math.abs(middle(node) - middle(here))),
      ArrowLeft: () => near(all.filter((node) => node.x < here.x), (node) => (here.x - node.x) * 10 + Math.abs(middle(node) - middle(here))),
      Home: () => near(all.filter((node) => node.x === here.x), (node) => node.y),
      End: () => near(all.filter((node) => node.x === here.x), (node) => -node.y),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const found = to();
    if (!found) return;
    if (!nodes.has(found.id)) { $("graph").scrollTop = found.y * zoom - $("graph").clientHeight / 2; reached = { top: -1, bottom: -1 }; drawNear(); }
    const next = nodes.get(found.id);
    roving(next);
    next.el.focus();
    next.el.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  for (const id of ["graph-filter", "predeclared", "hosts"]) {
    $(id).addEventListener("input", () => {
      if (id === "hosts") state.host = $("hosts").value;
      state.graphQueues = QUEUES_IN_GRAPH;
      $("graph").scrollTop = 0;
      state.structure = true;
      renderTopology();
      remember();
    });
  }
  $("more-queues").addEventListener("click", () => { state.graphQueues += 200; state.structure = true; renderTopology(); });

  // --- queues -----------------------------------------------------------------------------------------------

  const QUEUE_HEADS = [["name", "Name"], ["features", "Features"], ["ready", "Ready"], ["unacked", "Unacked"], ["set_aside", "Set aside"], ["consumers", "Consumers"], ["in", "In, 1/s"], ["out", "Out, 1/s"], ["ack", "Acked, 1/s"]];
  const RATES = ["in", "out", "ack"];
  const rate = (key, name) => (store.rates.get(key) || {})[name] || 0;
  const queueList = new List($("queue-list"), {
    height: 28,
    key: ([key]) => key,
    label: ([, row]) => `queue ${row.name}, ${number(row.ready)} ready, ${number(row.unacked)} unacked, ${many(row.consumers, "consumer")}${flags(row).length ? `, ${flags(row).join(", ")}` : ""}`,
    make: ([key, row, rates], at, old) => {
      const made = element("div", "queues-grid", cell("", row.virtual_host === "/" ? row.name : `${row.name}  (${row.virtual_host})`), element("span", "", ...features(row).map(([flag, text]) => { const made = cell("flag", flag); made.title = plainly(text); return made; })));
      for (const name of ["ready", "unacked", "set_aside", "consumers"]) {
        const part = count(row[name]);
        made.append(part);
        if (old && old[1][name] !== row[name]) requestAnimationFrame(() => flash(part));
      }
      for (const name of RATES) { const value = (rates || {})[name] || 0; made.append(cell(value ? "n" : "n zero", value ? value.toFixed(1) : "0")); }
      return made;
    },
    open: ([key]) => select("queue", key),
  });
  queueList.follows = true;

  function buildQueueHeads() {
    QUEUE_HEADS.forEach(([name, title], at) => {
      const sort = button(title, "", () => {
        state.sort = state.sort[0] === name ? (state.sort[1] === 1 ? [name, -1] : ["", 1]) : [name, at > 1 ? -1 : 1];
        for (const [each, part] of queueHeads) part.textContent = each === state.sort[0] ? (state.sort[1] === 1 ? " \u2191" : " \u2193") : "";
        for (const part of $("queue-heads").children) part.classList.toggle("sorted", part.dataset.name === state.sort[0]);
        sort.setAttribute("aria-pressed", state.sort[0] === name);
        sortedQueues = null;
        renderQueues();
      });
      const arrow = element("span", "");
      queueHeads.set(name, arrow);
      sort.append(arrow);
      sort.title = `Sort by ${title.toLowerCase()}`;
      const head = element("span", at > 1 ? "n" : "", sort);
      head.dataset.name = name;
      $("queue-heads").append(head);
    });
  }
  const queueHeads = new Map();
  let sortedQueues = null;

  function renderQueues() {
    const wanted = $("queue-filter").value.toLowerCase(), used = $("only-used").checked;
    let items = [];
    for (const item of store.queues) {
      const row = item[1];
      if (wanted && !row.name.toLowerCase().includes(wanted)) continue;
      if (used && !(row.ready || row.unacked || row.set_aside || row.consumers)) continue;
      items.push([...item, store.rates.get(item[0])]);
    }
    const [by, way] = state.sort;
    if (by) {
      const value = ([key, row]) => (by === "features" ? features(row).join(" ") : RATES.includes(by) ? rate(key, by) : row[by]);
      items.sort((a, b) => { const x = value(a), y = value(b); return way * (x < y ? -1 : x > y ? 1 : 0); });
    }
    // Rows are compared by their items, and an item stays the same as long as its row does.
    if (sortedQueues) {
      const known = new Map(sortedQueues.map((item) => [item[0], item]));
      items = items.map((item) => { const old = known.get(item[0]); return old && old[1] === item[1] && old[2] === item[2] ? old : item; });
    }
    sortedQueues = items;
    queueList.set(items);
    put($("queues-shown"), items.length === store.queues.size ? many(items.length, "queue") : `${number(items.length)} of ${many(store.queues.size, "queue")}`);
    $("queues-empty").hidden = items.length > 0;
    $("queue-list").hidden = !items.length;
    put($("queues-empty"), store.queues.size ? "No queue matches the filter." : emptyText());
  }
  $("queue-filter").addEventListener("input", () => { renderQueues(); remember(); });
  $("only-used").addEventListener("change", renderQueues);

  // --- messages ---------------------------------------------------------------------------------------------

  const OUTCOMES = [["published", "Published"], ["returned", "Returned"], ["dead-lettered", "Dead-lettered"], ["dropped", "Dropped"]];
  const outcomes = new Fetched($("outcome-list"), {
    height: 28,
    // The records until the pause stay the same.
    question: () => ["outcomes", { kind: state.outcome, text: $("outcome-filter").value, before: state.paused ? (store.broker.histories || {})[state.outcome] ?? 0 : null }, ask],
    label: (item) => `message to exchange ${item.exchange || "(default)"}, routing key ${item.routing_key}, ${item.told}, ${preview(item.body, item.size).slice(0, 80)}`,
    make: (item) => element("div", `outcomes-grid${state.outcome === "published" && !/^unroutable|^refused/.test(item.told) ? "" : " bad"}`, cell("n", item.message ? number(item.message) : ""), cell("", item.exchange || "(default)"), cell("", item.routing_key), cell("told", item.told), cell("n", number(item.size)), cell("body", preview(item.body, item.size))),
    open: (item) => select("message", item.message ? String(item.message) : `${state.outcome} ${item.key}`, item),
    told(total, { kept: of }) {
      put($("outcomes-shown"), total === of ? many(of, "message") : `${number(total)} of ${many(of, "message")}`);
      $("outcome-list").hidden = !total;
      $("outcomes-empty").hidden = total > 0;
      put($("outcomes-empty"), !Object.keys(store.broker.histories || {}).length ? "This broker keeps no history of messages: create it with history=10_000, for example." : of ? "No message matches the filter." : `No message was ${state.outcome} yet.`);
    },
  });

  function buildOutcomes() {
    for (const [name, title] of OUTCOMES) {
      const box = element("input");
      box.type = "radio";
      box.name = "outcome";
      box.value = name;
      box.addEventListener("change", () => { state.outcome = name; refetch(); });
      $("outcomes").append(element("label", "kind", box, element("span", "", title, element("em", ""))));
    }
  }

  function refetch() {
    $("outcome-list").scrollTop = 0;
    outcomes.list.unpick();
    outcomes.changed();
    renderMessages();
    remember();
  }
  $("outcome-filter").addEventListener("input", refetch);

  function renderMessages() {
    for (const box of $("outcomes").querySelectorAll("input")) {
      box.checked = box.value === state.outcome;
      put(box.nextSibling.lastChild, number((store.broker.histories || {})[box.value] || 0));
    }
    outcomes.fetch();
  }

  /** Everything about one message: what became of it, its story, its content. */
  function messagePane(key, item) {
    const message = /^\d+$/.test(key) ? Number(key) : 0;
    const told = element("div", ""), rest = element("div", ""), content = element("div", "");
    if (item) content.replaceChildren(section("Facts", "", table([...item.facts, [0, "exchange", item.exchange || "(default)", "s"], [0, "routing key", item.routing_key, "s"]], "Facts")), ...contentOf(item));
    if (message) {
      ask("story", { message, until: until() }).then((data) => {
        told.replaceChildren(story(data, message, (row) => select("event", row[0].join("."))));
        const row = data.rows.find((row) => row[12] >= 0) || data.rows[0];
        if (!item && row) content.replaceChildren(section("Facts", "", table(data.pool[row[10]], "Facts")), bodySection(row[12] < 0 ? null : data.pool[row[12]], Math.max(0, row[13])));
      }, (problem) => told.replaceChildren(element("p", "problem", plainly(problem.message))));
    } else told.replaceChildren(section("Story", "the broker has no trace of this message"));
    return { parts: [heading("Message", message ? String(message) : item ? item.told : key), told, content, rest] };
  }

  // --- connections ------------------------------------------------------------------------------------------

  const connectionList = new List($("connection-list"), {
    height: 28,
    key: ([key]) => key,
    label: ([, row]) => `connection ${row.alias} ${row.called || row.name}, ${row.client}, user ${row.user}, ${many(row.channels.length, "channel")}${row.blocked ? `, blocked: ${row.blocked}` : ""}`,
    make: ([, row]) => element("div", "connections-grid", element("span", "", element("b", "", ...seen(row.alias)), " ", ...seen(row.called || row.name)), cell("", row.client), cell("", row.user || ""), cell("", row.protocol),
      count(row.channels.length), count(row.channels.reduce((sum, each) => sum + each.unacked, 0)), cell("", row.blocked ? `blocked: ${row.blocked}` : row.unsent ? `${bytes(row.unsent)} unsent` : row.user ? "open" : "connecting")),
    open: ([key]) => select("connection", key),
  });
  connectionList.follows = true;

  function renderConnections() {
    connectionList.set(stable(connectionList.items, [...store.connections]));
    $("connections-empty").hidden = store.connections.size > 0;
    $("connection-list").hidden = !store.connections.size;
    put($("connections-empty"), plainly(`No connections. Clients reach the broker at ${store.broker.address || "its address"}.`));
  }

  function stable(before, items) {
    const known = new Map(before.map((item) => [item[0], item]));
    return items.map((item) => { const old = known.get(item[0]); return old && old[1] === item[1] ? old : item; });
  }

  // --- timeline ---------------------------------------------------------------------------------------------

  const SERIAL = 0, PLACE = 1, TIME = 2, PEER = 3, KIND = 4, DIRECTION = 5, CHANNEL = 6, NAME = 7, TEXT = 8, BAD = 9, HEARTBEATS = 10, UNTIL = 11, REAL = 12, MESSAGE = 13;
  const WAYS = ["to the broker", "from the broker"];
  const realTime = (line, digits) => (line[REAL] !== null && line[REAL].toFixed(3) !== line[TIME].toFixed(3) ? line[REAL].toFixed(digits) : "");
  const lineList = new List($("line-list"), {
    height: 24,
    key: (line) => `${line[SERIAL]}.${line[PLACE]}`,
    label: (line) => `${line[TIME].toFixed(3)} s, ${realTime(line, 3) && `real ${realTime(line, 3)} s, `}${line[PEER]} ${WAYS[line[DIRECTION]] || ""}, ${line[NAME]} ${line[TEXT]}${line[BAD] ? ", problem" : ""}`,
    make: (line) => {
      const made = element("div", `lines-grid k-${KINDS[line[KIND]][0]}${line[DIRECTION] === 1 ? " sent" : ""}${line[BAD] ? " bad" : ""}`,
        cell("n time", line[TIME].toFixed(3)), cell("n time of-real", realTime(line, 3)), cell("peer", line[PEER]), cell("way", ["\u2192", "\u2190"][line[DIRECTION]] || ""), cell("n time", line[CHANNEL] >= 0 ? String(line[CHANNEL]) : ""));
      made.append(element("span", "what", element("b", "", ...seen(line[NAME])), element("span", "", ...seen(line[TEXT]))));
      return made;
    },
    open: (line) => { $("follow").checked = false; select("event", `${line[SERIAL]}.${line[PLACE]}`); },
  });
  lineList.follows = true;
  $("line-list").classList.add("lines");

  function fits(line) {
    if (!state.kinds.has(line[KIND])) return false;
    const wanted = state.lineFilter;
    return !wanted || `${line[NAME]} ${line[TEXT]} ${line[PEER]}`.toLowerCase().includes(wanted) || state.peers.has(line[PEER]) || Boolean(state.found && state.found.has(`${line[SERIAL]}.${line[PLACE]}`));
  }

  /** The connections of which the client, or the address, has the text. */
  function findPeers() {
    const wanted = state.lineFilter;
    state.peers = new Set([...store.connections.values()].filter((row) => wanted && `${row.called} ${row.name}`.toLowerCase().includes(wanted)).map((row) => row.alias));
  }

  let searching = false;
  /** Find the lines that have the text in what their row does not show: all fields, headers, the body, the connection. */
  async function searchEverything() {
    if (searching || !lines.all.length) return;
    searching = true;
    const text = state.lineFilter, end = lines.next;
    try {
      const found = await ask("search", { text, serial: lines.all[0][SERIAL], until: end });
      if (text === state.lineFilter) {
        state.found = new Set(found.map((place) => place.join(".")));
        lines.shown = lines.all.filter(fits);
        if (state.tab === "timeline") renderTimeline();
      }
    } catch (problem) { say(problem.message, true); }
    searching = false;
    if (state.lineFilter && (text !== state.lineFilter || end !== lines.next)) searchEverything();
  }

  /** Heartbeats that go on with a line of those before: see fakeamqp.trace.folding. */
  function goesOn(line) {
    if (!line[HEARTBEATS]) {
      if (KINDS[line[KIND]][0] !== "model") lines.heard.delete(line[PEER]);
      return false;
    }
    const known = lines.heard.get(line[PEER]) || {};
    lines.heard.set(line[PEER], known);
    const before = known[line[DIRECTION]];
    known[line[DIRECTION]] = line;
    const at = before ? lines.all.lastIndexOf(before) : -1;
    if (at < 0) return false;
    const joined = known[line[DIRECTION]] = [...before];
    joined[HEARTBEATS] += line[HEARTBEATS];
    joined[UNTIL] = line[UNTIL];
    joined[TEXT] = `${joined[HEARTBEATS]} heartbeats until ${joined[UNTIL].toFixed(3)}`;
    lines.all[at] = joined;
    return true;
  }

  function takeLines(news) {
    if (news.cleared) { lines.all = []; lines.skipped = 0; lines.heard.clear(); }
    lines.skipped += news.skipped;
    lines.next = news.next;
    lines.clears = news.clears;
    for (const line of news.lines) if (!goesOn(line)) lines.all.push(line);
    if (lines.all.length > MOST_LINES) {
      lines.skipped += lines.all.length - MOST_LINES;
      lines.all = lines.all.slice(-MOST_LINES);
    }
    findPeers();
    lines.shown = lines.all.filter(fits);
    if (state.lineFilter) searchEverything();
    $("view-timeline").classList.toggle("with-real", lines.all.some((line) => realTime(line, 3)));
  }

  function renderTimeline() {
    const list = $("line-list");
    const atEnd = $("follow").checked;
    $("lines-empty").hidden = lines.shown.length > 0;
    list.hidden = !lines.shown.length;
    put($("lines-empty"), store.broker.trace === false ? "The trace of this broker is off: create it with trace=10_000, for example." : lines.all.length ? "No event matches the filter." : "Nothing has happened yet.");
    lineList.set(lines.shown);
    if (atEnd && lineList.count) { list.scrollTop = list.scrollHeight; lineList.draw(); }
    put($("lines-shown"), (lines.shown.length === lines.all.length ? many(lines.all.length, "event") : `${number(lines.shown.length)} of ${number(lines.all.length)}`) + (lines.skipped ? `, ${number(lines.skipped)} left out` : ""));
  }

  function refilter() {
    const wanted = $("line-filter").value.toLowerCase();
    if (wanted !== state.lineFilter) state.found = null;
    state.lineFilter = wanted;
    findPeers();
    lines.shown = lines.all.filter(fits);
    renderTimeline();
    if (wanted) searchEverything();
    remember();
  }
  $("line-filter").addEventListener("input", refilter);
  $("line-list").addEventListener("wheel", (event) => { if (event.deltaY < 0) $("follow").checked = false; }, { passive: true });
  $("line-list").addEventListener("keydown", (event) => { if (["ArrowUp", "PageUp", "Home"].includes(event.key)) $("follow").checked = false; });
  $("follow").addEventListener("change", renderTimeline);
  $("save").addEventListener("click", async () => {
    try {
      const page = await control("GET", `trace/html?title=${quoted(store.broker.held || "")}`);
      const link = element("a", "");
      link.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
      link.download = "trace.html";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      say("Saved the whole trace as trace.html.");
    } catch (problem) { say(problem.message, true); }
  });

  function buildKinds() {
    KINDS.forEach(([name, title], at) => {
      const box = element("input");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) state.kinds.add(at); else state.kinds.delete(at);
        refilter();
      });
      $("kinds").append(element("label", "kind", box, element("span", "", title)));
    });
  }

  // --- time -------------------------------------------------------------------------------------------------

  const timerList = new List($("timer-list"), {
    height: 28,
    key: (timer) => `${timer[0]} ${timer[1]}`,
    label: (timer) => `${timer[1]} in ${span(Math.max(0, timer[0] - instant()))}`,
    make: (timer) => element("div", timer[2] ? "timers-grid quiet-row" : "timers-grid", element("span", "n", `in ${span(Math.max(0, timer[0] - instant()))}`), cell("", timer[1]), element("span", "soft", timer[2] ? "housekeeping" : "")),
    open: () => {},
  });

  function renderTime() {
    const { time } = store;
    const virtual = time.mode === "virtual";
    put($("mode"), { real: "Real time, which only the machine moves", virtual: "Virtual time, which stands still until it is moved", wall: "Wall time, which follows datetime.now()" }[time.mode] || "");
    put($("now"), time.offset === undefined ? "" : new Date((instant() + time.offset) * 1000).toISOString().replace("T", " ").replace("Z", " UTC"));
    put($("elapsed"), time.elapsed === null || time.elapsed === undefined ? "" : `${span(time.elapsed)} passed since the broker was created`);
    for (const id of ["seconds", "next"]) $(id).disabled = !virtual;
    $("move").querySelector(".main").disabled = !virtual;
    const waiting = time.timers.find((timer) => !timer[2]);
    $("next").disabled = !virtual || !waiting;
    $("next").title = virtual && waiting ? plainly(`${waiting[1]} in ${span(Math.max(0, waiting[0] - instant()))}`) : "";
    if (!virtual && time.mode) put($("time-problem"), ""), put($("elapsed"), `${$("elapsed").textContent ? `${$("elapsed").textContent}. ` : ""}To move time here, create the broker with clock="virtual".`);
    timerList.set(time.timers);
    timerList.draw(true);
    $("timer-list").hidden = !time.timers.length;
    $("timers-empty").hidden = time.timers.length > 0;
    put($("timers-empty"), "No timer is pending: nothing in the broker waits for time to pass.");
    put($("timers-head"), time.more ? `Timers, the next ${number(time.timers.length)} of ${number(time.timers.length + time.more)}` : "Timers");
  }

  $("move").addEventListener("submit", (event) => { event.preventDefault(); const seconds = Number($("seconds").value); act(control("POST", "clock/advance", { seconds }), () => `Advanced ${many(seconds, "second")}.`, $("time-problem")); });
  $("next").addEventListener("click", () => act(control("POST", "clock/advance_to_next"), ({ seconds }) => `Advanced ${many(seconds, "second")} to the next timer.`, $("time-problem")));
  setInterval(() => { if (state.tab === "time" && !state.paused && !document.hidden && store.time.mode === "real") renderTime(); }, 500);

  // --- faults -----------------------------------------------------------------------------------------------

  const ruleParts = new Map();

  function renderFaults() {
    for (const [key, part] of ruleParts) if (!store.faults.has(key)) { part.el.remove(); ruleParts.delete(key); }
    for (const [key, row] of store.faults) {
      let part = ruleParts.get(key);
      if (!part) {
        const hits = element("b", ""), word = element("span", "soft", ""), more = element("small", ""), error = element("small", "bad"), hit = element("span", "hits", hits, word);
        const release = button("Release", "quiet", () => act(control("POST", `faults/${key}/release`), (answer) => `Released ${many(answer.count, "method")}.`));
        const remove = button("Remove", "quiet", () => act(control("DELETE", `faults/${key}`), (fault) => `Removed: ${fault.sentence}.`));
        const sentence = element("span", "");
        part = { sentence, remove, el: element("li", "", element("span", "sentence", sentence, more, error), hit, release, remove), hits, word, more, error, hit, release };
        ruleParts.set(key, part);
        $("rules").append(part.el);
      }
      // A rule gets its actions one after the other.
      if (put(part.sentence, plainly(row.sentence))) part.remove.setAttribute("aria-label", plainly(`Remove: ${row.sentence}`));
      if (put(part.hits, number(row.hits)) && part.known) flash(part.hit);
      part.known = true;
      put(part.word, row.hits === 1 ? " hit" : " hits");
      put(part.more, plainly(row.hits || !row.near_misses.length ? "" : `Near misses:\n${row.near_misses.join("\n")}`));
      put(part.error, plainly(row.error || ""));
      part.release.hidden = !row.held;
      put(part.release, `Release ${number(row.held)}`);
    }
    put($("rules-empty"), store.faults.size ? "" : "No fault is in force.");
  }

  let offers = null;
  async function prepareForms() {
    chooseHost();
    const options = (rows, most = 300) => [...rows.values()].filter((row) => row.name).slice(0, most).map((row) => { const made = element("option", ""); made.value = row.name; return made; });
    $("exchange-names").replaceChildren(...options(store.exchanges));
    $("queue-names").replaceChildren(...options(store.queues));
    if (offers) return;
    try { offers = await ask("fault-offers"); } catch (problem) { say(problem.message, true); return; }
    $("methods").replaceChildren(...offers.methods.map((name) => { const made = element("option", ""); made.value = name; return made; }));
    const option = (value, text) => { const made = element("option", "", text); made.value = value; return made; };
    $("fault-action").replaceChildren(...offers.actions.map((action) => option(action.name, action.label)));
    $("fault-trigger").replaceChildren(...offers.triggers.map((trigger) => option(trigger.name, trigger.label)));
    for (const name of offers.conditions) {
      const input = element("input");
      input.name = name;
      input.autocomplete = "off";
      input.spellcheck = false;
      if (name === "queue") input.setAttribute("list", "queue-names");
      if (name === "exchange") input.setAttribute("list", "exchange-names");
      $("fault-conditions").append(element("label", "", name.replace("_", " "), input));
    }
    chooseAction();
  }

  function chooseAction() {
    const action = offers.actions.find((each) => each.name === $("fault-action").value);
    $("fault-action").title = action.help;
    const fields = action.arguments.map((argument) => {
      let input;
      const { enum: choices, type } = argument.schema;
      if (choices) {
        input = element("select", "", ...choices.map((choice) => { const made = element("option", "", choice); made.value = choice; return made; }));
      } else {
        input = element("input");
        const kind = [type].flat().find((each) => each === "integer" || each === "number");
        input.type = kind ? "number" : "text";
        if (kind) input.step = kind === "number" ? "any" : "1";
        if (argument.value !== undefined) input.value = argument.value; else input.placeholder = "default";
      }
      input.name = argument.name;
      return element("label", "", argument.name, input);
    });
    $("fault-arguments").replaceChildren($("fault-arguments").firstElementChild, ...fields);
    $("fault-arguments").hidden = !fields.length;
    $("fault-number-label").hidden = !$("fault-trigger").value;
  }
  $("fault-action").addEventListener("change", chooseAction);
  $("fault-trigger").addEventListener("change", chooseAction);
  $("fault-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const value = (input) => (input.type === "number" && input.value ? Number(input.value) : input.value);
    const values = (where) => Object.fromEntries([...where.querySelectorAll("input, select")].filter((input) => input.value).map((input) => [input.name, value(input)]));
    // It is optional: a test does not fail if it never happens.
    const rule = { on: $("fault-method").value.trim(), optional: true, ...values($("fault-conditions")) };
    if ($("fault-direction").value) rule.direction = $("fault-direction").value;
    if ($("fault-trigger").value) rule[$("fault-trigger").value] = value($("fault-number"));
    if ($("fault-action").value) rule[$("fault-action").value] = values($("fault-arguments"));
    await act(control("POST", "faults", rule), (fault) => `Added: ${fault.sentence}.`, $("fault-problem"));
  });

  // --- publish ----------------------------------------------------------------------------------------------

  function json(id, name) {
    const text = $(id).value.trim();
    if (!text) return {};
    try { return JSON.parse(text); } catch (problem) { throw new Problem(`${name}: ${problem.message}`, 0); }
  }

  function written() {
    const properties = json("publish-properties", "More properties");
    if ($("publish-type").value) properties.content_type ??= $("publish-type").value;
    if ($("publish-persistent").checked) properties.delivery_mode ??= 2;
    return {
      virtual_host: $("publish-host").value || state.host || "/", exchange: $("publish-exchange").value, routing_key: $("publish-key").value,
      body: $("publish-body").value, headers: json("publish-headers", "Headers"), ...properties,
    };
  }

  $("publish-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    $("explanation").hidden = true;
    let message;
    try { message = written(); } catch (problem) { put($("publish-problem"), problem.message); return; }
    const size = new TextEncoder().encode(message.body).length;
    const said = await act(control("POST", "publish", message), (published) => `Published ${many(size, "byte")}: ${published.outcome}.`, $("publish-problem"));
    put($("published"), plainly(said || ""));
  });
  $("explain").addEventListener("click", async () => {
    put($("publish-problem"), "");
    try {
      const { text } = await control("POST", "explain", written());
      $("explanation").replaceChildren(...seen(text));
      $("explanation").hidden = false;
    } catch (problem) { put($("publish-problem"), plainly(problem.message)); }
  });

  function publishTo(exchange, key, host) {
    chooseHost();
    $("publish-host").value = host;
    $("publish-exchange").value = exchange;
    $("publish-key").value = key;
    show("publish");
    $("publish-body").focus();
  }

  // --- details ------------------------------------------------------------------------------------------------

  let pane = null;   // what the pane shows: {kind, key, update()}
  let from = null;   // what had the focus before

  /** Choose what the pane shows, on the view where it stands. `item` is what a list knows of it. */
  function select(kind, key, item, visited = true) {
    if (!state.selected) from = document.activeElement;
    state.selected = { kind, key, item };
    if (kind === "event" && state.tab !== "timeline") show("timeline", null);
    buildDetail();
    if (kind === "event") {
      const at = lines.shown.findIndex((line) => `${line[SERIAL]}.${line[PLACE]}` === key);
      if (at >= 0) { $("follow").checked = false; lineList.set(lines.shown); lineList.pick(at); }
    }
    render();
    remember(visited);
    reveal({ exchange: "e", queue: "q", consumer: "c" }[kind] + key);
  }

  /** The pane lies over the graph, whose picture stays where it is unless the chosen node would be covered. */
  function reveal(id) {
    const node = nodes.get(id), pane = $("graph");
    if (!node || state.tab !== "topology") return;
    node.el.scrollIntoView({ block: "nearest", inline: "nearest" });
    const covered = node.el.getBoundingClientRect().right + 12 - $("detail").getBoundingClientRect().left;
    if (getComputedStyle($("detail")).position === "absolute" && covered > 0) pane.scrollLeft += covered;
  }

  function close() {
    state.selected = null;
    pane = null;
    $("detail").hidden = true;
    $("detail").replaceChildren();
    for (const list of [queueList, connectionList, lineList, outcomes.list]) list.unpick();
  }

  function shut() {
    close();
    remember(true);
    render();
    if (from && from.isConnected) from.focus(); else $("panel").focus();
  }

  function heading(kicker, title) {
    return element("header", "", element("div", "name", element("p", "kicker", kicker), element("h2", "", ...seen(title))), (() => { const made = button("Close", "quiet", shut); made.setAttribute("aria-label", "Close the details"); return element("span", "actions", made); })());
  }

  function figures(names) {
    const values = new Map(names.map((name) => [name, element("dd", "", "0")]));
    const made = element("dl", "figures", ...names.map((name) => element("div", "", element("dt", "", name), values.get(name))));
    return [made, (name, value) => { const first = !values.get(name).dataset.set; values.get(name).dataset.set = "1"; if (put(values.get(name), value) && !first) flash(values.get(name).parentNode); }];
  }

  const PANES = { queue: queuePane, exchange: exchangePane, consumer: consumerPane, connection: connectionPane, event: eventPane, message: messagePane, failure: failurePane };

  function buildDetail() {
    const { kind, key, item } = state.selected;
    const made = PANES[kind](key, item);
    pane = { kind, key, ...made };
    $("detail").replaceChildren(...made.parts);
    $("detail").hidden = false;
    $("detail").scrollTop = 0;
  }

  function renderDetail() {
    if (pane && pane.update) pane.update();
  }

  function gone(what) {
    return element("p", "lead", `This ${what} is gone.`);
  }

  /** Says why something could not be loaded; what is gone says so itself. */
  const notLoaded = (where) => (problem) => { if (state.paused) where.replaceChildren(element("p", "lead", plainly(problem.message))); };

  function queuePane(key) {
    const row = store.queues.get(key);
    if (!row) return { parts: [heading("Queue", "gone"), gone("queue")] };
    const [numbers, set] = figures(["Ready", "Unacked", "Set aside", "Consumers", "In, 1/s", "Out, 1/s", "Acked, 1/s"]);
    const lead = element("p", "lead", ...seen([row.type, row.durable ? "durable" : "transient", ...features(row).map(([flag]) => flag).filter((flag) => flag !== row.type && flag !== "transient"), row.virtual_host === "/" ? "" : `virtual host ${row.virtual_host}`].filter(Boolean).join(", ")));
    const where = { virtual_host: row.virtual_host, queue: row.name };
    const purge = button("Purge", "quiet", async () => {
      const now = store.queues.get(key);
      if (await confirm(`Purge queue ${row.name}?`, `${many(now ? now.ready : 0, "ready message")} will be dropped. Unacked messages stay.`, "Purge")) act(control("POST", `queues/${quoted(row.virtual_host)}/${quoted(row.name)}/purge`), (answer) => `Dropped ${many(answer.count, "ready message")} of queue '${row.name}'.`);
    });
    const publish = button("Publish to it", "quiet", () => publishTo("", row.name, row.virtual_host));
    const box = element("div", "messages");
    const heads = element("div", "heads messages-grid", ...["Place", "State", "Size", "Routing key", "Body"].map((name, at) => element("span", at === 0 || at === 2 ? "n" : "", name)));
    heads.setAttribute("aria-hidden", "true");
    const list = element("div", "list");
    list.setAttribute("role", "listbox");
    list.tabIndex = 0;
    list.setAttribute("aria-label", plainly(`Messages of queue ${row.name}`));
    box.append(heads, list);
    const empty = element("p", "lead", "No messages.");
    const one = element("div", "");
    one.setAttribute("aria-live", "off");
    let total = -1;
    const messages = messagesOf(list, where, one, (found) => { box.hidden = !found; empty.hidden = found > 0; });
    messages.failed = notLoaded(one);
    const rest = element("div", "");
    const consumers = element("div", "");
    const shows = [heading("Queue", row.name), lead, numbers, element("p", "row-of-buttons", purge, publish), section("Messages", "ready, unacked, then set aside", box, empty), one, consumers, rest];
    askNow("queue", { virtual_host: row.virtual_host, name: row.name }).then((facts) => { rest.replaceChildren(...factsOf(facts, "from")); }, notLoaded(rest));
    let told = "";
    return {
      parts: shows, messages,
      update() {
        const now = store.queues.get(key);
        if (!now) { if (!told.startsWith("gone")) { told = "gone"; numbers.replaceWith(gone("queue")); purge.disabled = true; } return; }
        set("Ready", number(now.ready));
        set("Unacked", number(now.unacked));
        set("Set aside", number(now.set_aside));
        set("Consumers", number(now.consumers));
        RATES.forEach((name, at) => set(["In, 1/s", "Out, 1/s", "Acked, 1/s"][at], rate(key, name).toFixed(1)));
        purge.disabled = !now.ready;
        if (total !== (total = now.ready + now.unacked + now.set_aside)) { messages.told(total); messages.stale = true; }
        messages.fetch();
        const of = [...store.consumers].filter(([, consumer]) => consumer.queue === key).slice(0, 50);
        const said = JSON.stringify(of);
        if (said !== told) {
          told = said;
          consumers.replaceChildren(...(of.length ? [section("Consumers", "", consumerTable(of))] : []));
        }
      },
    };
  }

  function consumerTable(of) {
    const head = element("thead", "", element("tr", "", ...["Tag", "Connection", "Channel", "Prefetch", "Unacked"].map((name) => { const made = element("th", "", name); made.scope = "col"; return made; })));
    return element("table", "", head, element("tbody", "", ...of.map(([, row]) => {
      const connection = store.connections.get(row.connection);
      return element("tr", "", ...[row.tag, connection ? connection.called || connection.alias : row.connection || "", row.channel === null ? "" : String(row.channel), row.no_ack ? "no ack" : String(row.prefetch || "unlimited"), row.unacked === null ? "many" : String(row.unacked)].map((text) => element("td", "", ...seen(text))));
    })));
  }

  function factsOf(facts, way) {
    const shows = [];
    if (facts.facts.length) shows.push(section("Set by", "", table(facts.facts, "Facts")));
    shows.push(section("Arguments", facts.arguments.length ? "" : "none", ...(facts.arguments.length ? [table(facts.arguments, "Arguments")] : [])));
    const rows = facts.bindings.map(([other, key, fields]) => [0, `${way} ${other || "(default)"}`, [key || '""', ...fields.map((field) => `${field[1]}=${field[2]}`)].join("  "), "s"]);
    shows.push(section("Bindings", rows.length ? (facts.more ? `and ${number(facts.more)} more` : "") : "none", ...(rows.length ? [table(rows, "Bindings")] : [])));
    return shows;
  }

  function exchangePane(key) {
    const row = store.exchanges.get(key);
    if (!row) return { parts: [heading("Exchange", "gone"), gone("exchange")] };
    const [numbers, set] = figures(["Published", "Dead letters", "From exchanges", "Unroutable", "Delayed"]);
    const rest = element("div", "");
    const lead = [row.type, row.durable ? "durable" : "transient", row.internal && "internal", row.alternate_exchange !== undefined && `otherwise to ${row.alternate_exchange}`].filter(Boolean).join(", ");
    askNow("exchange", { virtual_host: row.virtual_host, name: row.name }).then((facts) => { rest.replaceChildren(...factsOf(facts, "to")); }, notLoaded(rest));
    return {
      parts: [heading("Exchange", row.name || "(default)"), element("p", "lead", ...seen(lead)), numbers, element("p", "row-of-buttons", button("Publish to it", "quiet", () => publishTo(row.name, "", row.virtual_host))), rest],
      update() {
        set("Published", number(store.flows.get(`p${key}`) || 0));
        set("Dead letters", number(store.flows.get(`d${key}`) || 0));
        set("From exchanges", number(store.flows.get(`i${key}`) || 0));
        set("Unroutable", number(store.flows.get(`u${key}`) || 0));
        set("Delayed", number((store.exchanges.get(key) || row).delayed));
      },
    };
  }

  function consumerPane(key) {
    const row = store.consumers.get(key);
    if (!row) return { parts: [heading("Consumer", "gone"), gone("consumer")] };
    const queue = store.queues.get(row.queue), connection = store.connections.get(row.connection);
    const facts = [["Queue", queue ? queue.name : ""], ["Connection", connection ? connection.name : row.connection || ""], ["Channel", row.channel === null ? "" : String(row.channel)], ["Acknowledges", row.no_ack ? "no" : "yes"], ["Prefetch", String(row.prefetch || "unlimited")], ["Exclusive", row.exclusive ? "yes" : "no"]];
    const [numbers, set] = figures(["Unacked"]);
    const links = element("p", "row-of-buttons", button("Its queue", "quiet", () => select("queue", row.queue)));
    if (connection) links.append(button("Its connection", "quiet", () => select("connection", row.connection)));
    return {
      parts: [heading("Consumer", row.tag), numbers, links, table(facts.map(([name, value]) => [0, name, value, "s"]), "Consumer")],
      update() { const now = store.consumers.get(key); if (now) set("Unacked", now.unacked === null ? "many" : number(now.unacked)); },
    };
  }

  function connectionPane(key) {
    const row = store.connections.get(key);
    if (!row) return { parts: [heading("Connection", "gone"), gone("connection")] };
    const lead = element("p", "lead", "");
    const channels = element("div", ""), rest = element("div", "");
    const close = button("Close the connection", "quiet", async () => {
      if (await confirm(`Close connection ${row.called || row.alias || row.name}?`, "The client gets connection.close with code 320, CONNECTION_FORCED.", "Close it")) act(control("POST", `connections/${quoted(key)}/close`, { text: "CONNECTION_FORCED - closed in the inspector" }), () => `Closed connection '${key}' with 320.`);
    });
    askNow("connection", { name: key }).then((facts) => { if (facts) rest.replaceChildren(section("Client properties", "", table(facts.properties, "Client properties"))); }, notLoaded(rest));
    let told = "";
    return {
      parts: [heading("Connection", row.called || row.name), lead, element("p", "row-of-buttons", close), channels, rest],
      update() {
        const now = store.connections.get(key);
        if (!now) { put(lead, "This connection is closed."); close.disabled = true; return; }
        put(lead, plainly([now.alias, now.name, now.client, `user ${now.user}`, `virtual host ${now.virtual_host}`, `AMQP ${now.protocol}`, now.heartbeat ? `heartbeat ${now.heartbeat} s` : "no heartbeats", now.blocked && `blocked: ${now.blocked}`].filter(Boolean).join(", ")));
        const said = JSON.stringify(now.channels);
        if (said === told) return;
        told = said;
        const head = (names) => element("thead", "", element("tr", "", ...names.map((name) => { const made = element("th", "", name); made.scope = "col"; return made; })));
        const body = (rows) => element("tbody", "", ...rows.slice(0, 200).map((values) => element("tr", "", ...values.map((value) => element("td", "", ...seen(String(value)))))));
        const [title, column] = now.protocol === "1-0" ? ["Sessions", "Session"] : ["Channels", "Channel"];
        const rows = now.channels.map((each) => [each.number, each.mode || "plain", each.consumers, each.prefetch || "unlimited", each.unacked]);
        const links = now.channels.flatMap((each) => each.links.map(([name, role, address, credit, count]) => [each.number, name, role, address === null ? "anonymous" : address, credit, count]));
        channels.replaceChildren(section(title, rows.length ? "" : "none", ...(rows.length ? [element("table", "", head([column, "Mode", "Consumers", "Prefetch", "Unacked"]), body(rows))] : [])),
          ...(links.length ? [section("Links", "", element("table", "", head(["Session", "Name", "The client is", "Address", "Credit", "Deliveries"]), body(links)))] : []));
      },
    };
  }

  function eventPane(key) {
    const [serial, place] = key.split(".").map(Number);
    const line = lines.all.find((each) => each[SERIAL] === serial && each[PLACE] === place);
    const rest = element("div", "", element("p", "lead", "Loading"));
    const shows = [heading("Event", line ? line[NAME] : String(serial))];
    const when = (time, real) => `${time.toFixed(6)} s${real ? `, real ${real} s` : ""}`;
    if (line) shows.push(element("p", "lead", `${when(line[TIME], realTime(line, 6))}, ${[line[PEER], WAYS[line[DIRECTION]], line[CHANNEL] >= 0 && `channel ${line[CHANNEL]}`].filter(Boolean).join(", ")}`));
    ask("event", { serial, place }).then((event) => {
      if (!event) { rest.replaceChildren(element("p", "lead", ...seen(line ? line[TEXT] : "")), element("p", "lead", "The trace no longer keeps this event.")); return; }
      const made = [element("p", "lead", ...seen(event.text))];
      if (!line) made.unshift(element("p", "lead", ...seen(`${event.name}, ${when(event.time, "")}`)));
      if (WORDS[event.name]) made.unshift(element("p", "lead", WORDS[event.name]));
      if (event.message) made.push(element("p", "row-of-buttons", button(`Story of message ${event.message}`, "quiet", () => select("message", String(event.message)))));
      if (event.fields.length) made.push(section(event.kind === "method" ? "Fields" : "Facts", "", table(event.fields, "Fields")));
      if (event.properties) made.push(section("Properties", event.properties.length ? "" : "none", ...(event.properties.length ? [table(event.properties, "Properties")] : [])));
      if (event.size >= 0) made.push(bodySection(event.body, event.size));
      if (event.connection) made.push(section("Connection", "", element("p", "", ...seen(event.connection))));
      rest.replaceChildren(...made);
    }, (problem) => rest.replaceChildren(element("p", "problem", plainly(problem.message))));
    return { parts: [...shows, rest] };
  }

  /** The failed test that is held open. */
  function failurePane() {
    const failure = store.broker.failure;
    if (!failure) return { parts: [heading("Test", "goes on")] };
    return { parts: [heading("The test failed here", failure.test), ...failed(failure)] };
  }

  /** The messages of a queue, and below them the one that is chosen. */
  function messagesOf(where, queue, one, told) {
    const show = (item, at) => {
      const facts = [["Exchange", item.exchange || "(default)"], ["Routing key", item.routing_key]];
      if (item.redelivered) facts.push(["Redelivered", "yes"]);
      if (item.expires_in !== null) facts.push(["Expires in", span(item.expires_in)]);
      if (item.state === "unacked") facts.push(["Held by", `${item.consumer || "a get"} on ${item.connection || "?"}${item.channel === null ? "" : `, channel ${item.channel}`}, for ${span(item.held_for || 0)}`]);
      const shows = [section(`Message ${number(item.offset ?? at)}`, item.state, table(facts.map(([name, value]) => [0, name, value, "s"]), "Message"))];
      if (item.message) shows.push(element("p", "row-of-buttons", button("Its story", "quiet", () => select("message", String(item.message)))));
      shows.push(...contentOf(item));
      if (item.shown < item.size) {
        shows.push(button("Show more of the body", "quiet", async () => {
          try {
            const whole = await askNow("message", { ...queue, at, key: item.key });
            if (whole) show(whole, at); else say("This message is no longer in the queue.");
          } catch (problem) { say(problem.message, true); }
        }));
      }
      one.className = "one";
      one.replaceChildren(...shows);
    };
    return new Fetched(where, {
      height: 26,
      question: () => ["messages", queue, askNow],
      label: (item) => `${item.state} message, ${bytes(item.size)}, routing key ${item.routing_key}, ${preview(item.body, item.size).slice(0, 80)}`,
      make: (item, at) => element("div", "messages-grid", element("span", "n", number(item.offset ?? at)), element("span", `state-${item.state.replace(" ", "-")}`, item.state), element("span", "n", number(item.size)), cell("", item.routing_key), cell("body", preview(item.body, item.size))),
      open: show,
      told,
    });
  }

  function contentOf(item) {
    const shows = [];
    if (item.properties.length) shows.push(section("Properties", "", table(item.properties, "Properties")));
    if (item.headers.length) shows.push(section("Headers", "", table(item.headers, "Headers")));
    if (item.sections.length) shows.push(section("Sections", "", table(item.sections, "Sections")));
    shows.push(bodySection(item.body, item.size));
    return shows;
  }

  function messagesMayHaveChanged(data) {
    if (pane && pane.messages && (data.flows || data.timeline || data.queues || data.clock !== undefined && store.time.mode !== "real") && !state.paused) pane.messages.changed();
    if (data.broker && state.tab === "messages") outcomes.changed();
  }

  // --- controls -----------------------------------------------------------------------------------------------

  function confirm(title, text, verb) {
    return new Promise((done) => {
      const dialog = $("confirm");
      put($("confirm-title"), plainly(title));
      put($("confirm-text"), plainly(text));
      put($("confirm-yes"), verb);
      dialog.returnValue = "no";
      dialog.onclose = () => done(dialog.returnValue === "yes");
      dialog.showModal();
    });
  }

  function pause() {
    state.paused = !state.paused;
    $("pause").setAttribute("aria-pressed", state.paused);
    put($("pause"), state.paused ? "Go on" : "Pause");
    if (state.paused) { stream.abort(); live("on", "Paused"); return; }
    goOn();
    if (state.selected) buildDetail();
  }
  $("pause").addEventListener("click", pause);
  $("to-failure").addEventListener("click", showFailure);
  $("end-hold").addEventListener("click", () => act(ask("end-hold"), () => "The test goes on, and its broker stops."));

  $("single-keys").checked = kept("fakeamqp-keys") !== "off";
  $("single-keys").addEventListener("change", () => kept("fakeamqp-keys", $("single-keys").checked ? "on" : "off"));
  $("help").addEventListener("click", () => { glossary($("words")); $("keys").showModal(); });
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("panel").focus(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && state.selected) { event.preventDefault(); shut(); return; }
    if (event.target.closest("input, select, textarea") || !$("single-keys").checked) return;
    const filter = document.querySelector(`#view-${state.tab} input[type="search"]`);
    const action = {
      "/": () => { if (filter) { filter.focus(); filter.select(); } },
      p: pause,
      "?": () => $("help").click(),
    }[event.key] || (TABS[Number(event.key) - 1] && usable(TABS[Number(event.key) - 1][0]) && (() => { show(TABS[Number(event.key) - 1][0]); $(`tab-${state.tab}`).focus(); }));
    if (!action) return;
    event.preventDefault();
    action();
  });

  // --- the address ----------------------------------------------------------------------------------------------

  const RENDER = { topology: renderTopology, queues: renderQueues, messages: renderMessages, connections: renderConnections, timeline: renderTimeline, time: renderTime, faults: renderFaults, publish: () => chooseHost() };

  /** Names in the address, by the kind of what is chosen. Queues and exchanges have their virtual host with them. */
  const hostOf = (row) => row && row.virtual_host !== "/" ? `&host=${encodeURIComponent(row.virtual_host)}` : "";

  function address() {
    const { selected } = state;
    const words = [state.tab];
    if (selected) {
      const row = { queue: store.queues, exchange: store.exchanges }[selected.kind]?.get(selected.key);
      words.push(`${selected.kind}=${wellFormed(row ? row.name : selected.key)}${hostOf(row)}`);
    }
    if (state.tab === "messages" && state.outcome !== "published") words.push(`outcome=${state.outcome}`);
    for (const [tab, id] of Object.entries(FILTERS)) if (state.tab === tab && $(id).value) words.push(`filter=${wellFormed($(id).value)}`);
    return `#${words.join("&")}`;
  }
  const FILTERS = { topology: "graph-filter", queues: "queue-filter", messages: "outcome-filter", timeline: "line-filter" };
  const wellFormed = (text) => encodeURIComponent(text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd"));

  /** Put what is shown into the address; with `visited`, Back returns from it. */
  function remember(visited = false) {
    if (!state.known || state.following) return;
    const written = address();
    if (written === location.hash) return;
    try { history[visited && !state.moving ? "pushState" : "replaceState"](null, "", written); } catch { /* the page works without its address */ }
  }

  /** Show what the address says: a view, and what is chosen there. */
  function follow() {
    const words = new Map(location.hash.slice(1).split("&").map((word) => {
      const at = word.indexOf("=");
      try { return at < 0 ? ["tab", word] : [word.slice(0, at), decodeURIComponent(word.slice(at + 1))]; } catch { return ["", ""]; }
    }));
    const kind = Object.keys(PANES).find((each) => words.has(each));
    const standing = { queue: "queues", exchange: "topology", consumer: "topology", connection: "connections", event: "timeline", message: "messages", failure: "timeline" };
    let tab = words.get("tab") || standing[kind];
    if (!TABS.some(([name]) => name === tab) || !usable(tab)) tab = usable("topology") ? "topology" : "connections";
    state.following = true;
    if (OUTCOMES.some(([name]) => name === words.get("outcome"))) state.outcome = words.get("outcome");
    if (FILTERS[tab] && words.has("filter") && $(FILTERS[tab]).value !== words.get("filter")) {
      $(FILTERS[tab]).value = words.get("filter");
      $(FILTERS[tab]).dispatchEvent(new Event("input"));
    }
    if (!kind) close();
    show(tab, false);
    if (kind) {
      const named = { queue: store.queues, exchange: store.exchanges }[kind], host = words.get("host") || "/";
      const key = named ? [...named].find(([, row]) => row.name === words.get(kind) && row.virtual_host === host)?.[0] ?? words.get(kind) : words.get(kind);
      if (named && kind && store.broker.virtual_hosts.includes(host) && state.host !== host) { state.host = host; state.structure = true; }
      select(kind, key, undefined, false);
      const list = { queue: queueList, connection: connectionList }[kind];
      const at = list && tab !== "topology" ? list.items.findIndex((item) => item[0] === key) : -1;
      if (at >= 0) list.pick(at);
    } else if (!words.get("tab") && store.broker.failure) {
      showFailure();
    }
    state.following = false;
    remember();
  }

  /** The timeline where the test failed, with the assertion and the source. */
  function showFailure() {
    show("timeline", false);
    select("failure", "", undefined, false);
    const before = lines.shown.findLastIndex((line) => line[SERIAL] < store.broker.failure.event);
    if (before >= 0) { $("follow").checked = false; lineList.pick(before); }
  }

  function begin() {
    const found = /^#token=([\w-]+)$/.exec(location.hash);
    try {
      // Kept for this tab only, so that a reload works and the address has no secret.
      if (found) sessionStorage.setItem("fakeamqp-inspector", found[1]);
      state.token = (found && found[1]) || sessionStorage.getItem("fakeamqp-inspector") || "";
    } catch { state.token = found ? found[1] : ""; }
    if (found) { try { history.replaceState(null, "", "#"); } catch { /* the page works without its address */ } }
    state.lineFilter = "";
    buildTabs();
    buildQueueHeads();
    buildKinds();
    colours();
    buildOutcomes();
    const tab = TABS.find(([name]) => location.hash.slice(1).split("&")[0] === name);
    show(tab ? tab[0] : "topology", false);
    listen();
  }
  window.addEventListener("hashchange", () => {
    if (location.hash.startsWith("#token=")) { location.reload(); return; }
    if (location.hash !== address()) follow();
  });
  begin();
})();
