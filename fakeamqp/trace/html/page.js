(() => {
  // The indexes of values in a row; see rows.py.
  const IDS = 0, TIME = 1, CONNECTION = 2, KIND = 3, DIRECTION = 4, CHANNEL = 5, NAME = 6, TEXT = 7, QUEUES = 8,
    PROBLEM = 9, FIELDS = 10, PROPERTIES = 11, BODY = 12, SIZE = 13, REAL = 14, MESSAGE = 15;
  const TITLES = { method: "Methods", frame: "Other frames", heartbeat: "Heartbeats", model: "Model", connection: "Connections", fault: "Faults" };
  const MOST_LIFELINES = 8; // more connections than that share one lifeline
  const OVERSCAN = 8;     // rows made beyond what is visible

  const { $, root, element, button, number, many, plainly, seen, span, seconds, octets, preview, section, table, bodySection, story, WORDS, glossary, failed, theme, THEMES } = parts;
  const data = JSON.parse($("data").textContent);
  $("data").remove();
  const { rows, pool, connections, kinds, failure } = data;
  Object.assign(WORDS, data.words);
  const list = $("list"), canvas = $("canvas"), detail = $("detail");

  // --- helpers --------------------------------------------------------------------------------------------

  /** `text` with what is searched for marked. */
  function marked(text) {
    const lower = text.toLowerCase();
    if (!state.query || lower.length !== text.length) return seen(text);
    const parts = [];
    let start = 0;
    for (let at = lower.indexOf(state.query); at >= 0; at = lower.indexOf(state.query, start)) {
      if (at > start) parts.push(...seen(text.slice(start, at)));
      start = at + state.query.length;
      parts.push(element("mark", "", ...seen(text.slice(at, start))));
    }
    if (start < text.length) parts.push(...seen(text.slice(start)));
    return parts;
  }

  /** Real time, where that of the broker's clock is another one. */
  const real = (row) => (row[REAL] !== null && row[REAL].toFixed(3) !== row[TIME].toFixed(3) ? seconds(row[REAL]) : "");

  function client(connection) {
    return connection.connection_name || [connection.product, connection.version].filter(Boolean).join(" ") || connection.name.split(" -> ")[0];
  }

  // --- what is shown ---------------------------------------------------------------------------------------

  const state = {
    connection: -1, kinds: new Set(kinds.keys()), direction: -1, channel: -1, name: -1, queue: -1,
    query: "", only: false, message: 0, picked: -1, open: false,
  };
  let shown = [];          // numbers of rows
  let place = new Map();   // number of a row: its place in `shown`
  let hits = [];           // numbers of rows that match, in order
  let hit = new Set();
  let haystacks = null;
  const rowOf = new Map(); // number of an event: number of its row
  rows.forEach((row, index) => row[IDS].forEach((id) => rowOf.set(id, index)));

  const flat = (place) => (place < 0 ? "" : pool[place].map((field) => `${field[1]} ${field[2]}`).join("\n"));
  const bodyOf = (row) => (row[BODY] < 0 ? null : pool[row[BODY]]);

  function haystack(row) {
    const body = bodyOf(row);
    let text = body ? body[1] : "";
    if (body && body[0] === "base64") text = Array.from(octets(body), (octet) => String.fromCharCode(octet)).join("");
    const connection = connections[row[CONNECTION]];
    const who = connection ? `${connection.alias} ${connection.name} ${connection.connection_name || ""}` : "";
    const queues = row[QUEUES].map((name) => pool[name]).join(" ");
    return [pool[row[NAME]], pool[row[TEXT]], who, queues, flat(row[FIELDS]), flat(row[PROPERTIES]), text].join("\n").toLowerCase();
  }

  function fits(row) {
    return state.kinds.has(row[KIND])
      && (state.connection < 0 || row[CONNECTION] === state.connection)
      && (state.direction < 0 || row[DIRECTION] === state.direction)
      && (state.channel < 0 || row[CHANNEL] === state.channel)
      && (state.name < 0 || row[NAME] === state.name)
      && (state.queue < 0 || row[QUEUES].includes(state.queue))
      && (!state.message || row[MESSAGE] === state.message);
  }

  function filter() {
    if (state.query && !haystacks) haystacks = rows.map(haystack);
    shown = [];
    hits = [];
    rows.forEach((row, index) => {
      if (!fits(row)) return;
      const found = state.query !== "" && haystacks[index].includes(state.query);
      if (found) hits.push(index);
      if (found || !state.query || !state.only) shown.push(index);
    });
    hit = new Set(hits);
    place = new Map(shown.map((index, at) => [index, at]));
    canvas.style.height = `${shown.length * rowHeight}px`;
    layout();
    $("empty").hidden = shown.length > 0;
    $("empty").textContent = rows.length ? "No event matches the filter." : "The trace has no events.";
    $("shown").textContent = shown.length === rows.length ? `${number(rows.length)} rows` : `${number(shown.length)} of ${number(rows.length)} rows`;
    document.body.dataset.shown = shown.length;
    $("reset").hidden = !(state.kinds.size < kinds.length || state.direction >= 0 || state.channel >= 0 || state.name >= 0 || state.queue >= 0 || state.query || state.message);
    for (const id of ["direction", "channel", "method", "queue"]) $(id).classList.toggle("set", $(id).value !== "-1");
    $("list").setAttribute("aria-label", `Events in order, ${shown.length} shown`);
    tellMatches();
    draw(true);
    drawMap();
    remember();
  }

  function tellMatches() {
    const at = hits.indexOf(state.picked);
    const total = number(hits.length);
    $("found").textContent = !state.query ? "" : !hits.length ? "no match" : at >= 0 ? `${number(at + 1)} of ${total}` : hits.length === 1 ? "1 match" : `${total} matches`;
    $("previous").disabled = $("next").disabled = !hits.length;
  }

  // --- the list: only rows that are near the visible ones are in the document ------------------------------

  let rowHeight = 36;
  let lifelines = [];          // connection: x of its lifeline
  let broker = 0;
  const made = new Map();  // place in `shown`: element

  function layout() {
    rowHeight = parseFloat(getComputedStyle(root).getPropertyValue("--row")) || 36;
    const gutter = parseFloat(getComputedStyle(root).getPropertyValue("--gutter")) || 0;
    const width = Math.max(160, canvas.clientWidth - gutter);
    const small = window.matchMedia("(max-width: 760px)").matches;
    // Without notes there is nothing to keep room for on the broker's far side, without arrows on the near one.
    const notes = shown.some((index) => kinds[rows[index][KIND]] === "model");
    const arrows = shown.some((index) => kinds[rows[index][KIND]] !== "model");
    broker = Math.round(small ? width - 16 : notes === arrows ? width * 0.6 : notes ? width * 0.3 : Math.min(width - 60, 1100));
    const together = state.connection >= 0 || connections.length > MOST_LIFELINES;
    const count = together ? 1 : Math.max(1, connections.length);
    const step = Math.min(84, (broker * (small ? 0.4 : 0.5)) / count);
    lifelines = connections.map((_, index) => 10 + (together ? 0 : Math.round(index * step)));
    const unique = [...new Set(lifelines.length ? lifelines : [10])];
    const line = (x, size) => `linear-gradient(var(--edge), var(--edge)) ${gutter + x - size / 2}px 0 / ${size}px 100% no-repeat`;
    canvas.style.setProperty("--rails", [...unique.map((x) => line(x, 1)), line(broker, 2)].join(", "));
    canvas.style.setProperty("--broker-x", `${broker}px`);
    const heads = $("heads");
    heads.replaceChildren();
    const head = (text, x, first) => {
      const made = element("b", first ? "first" : "", ...seen(text));
      made.style.left = `${first ? Math.max(0, x - 8) : x}px`;
      heads.append(made);
    };
    if (together) {
      const one = connections[state.connection];
      head(one ? `client ${one.alias}` : "clients", 10, true);
    } else {
      connections.forEach((connection, index) => head(step >= 24 || index === 0 ? connection.alias : "", lifelines[index], index === 0));
    }
    head("broker", Math.min(broker, width - 30), false);
  }

  function sentence(row) {
    const connection = connections[row[CONNECTION]];
    const who = connection ? connection.alias : "";
    const way = row[DIRECTION] === 0 ? `${who} to broker` : row[DIRECTION] === 1 ? `broker to ${who}` : [kinds[row[KIND]] === "model" ? "in the broker" : kinds[row[KIND]], who].filter(Boolean).join(", ");
    const channel = row[CHANNEL] >= 0 ? `, channel ${row[CHANNEL]}` : "";
    const content = row[SIZE] >= 0 ? `, body of ${many(row[SIZE], "byte")}` : "";
    return `${seconds(row[TIME])} s${real(row) && `, real ${real(row)} s`}, ${way}${channel}: ${pool[row[NAME]]} ${pool[row[TEXT]]}${content}${row[PROBLEM] ? ", problem" : ""}`;
  }

  function make(at) {
    const index = shown[at], row = rows[index], kind = kinds[row[KIND]];
    const made = element("div", `row k-${kind}`);
    if (row[DIRECTION] === 1) made.classList.add("sent");
    if (row[PROBLEM]) made.classList.add("problem");
    if (hit.has(index)) made.classList.add("hit");
    made.id = `e${row[IDS][0]}`;
    made.dataset.at = at;
    made.setAttribute("role", "option");
    made.setAttribute("aria-setsize", shown.length);
    made.setAttribute("aria-posinset", at + 1);
    made.setAttribute("aria-label", sentence(row));
    made.style.top = `${at * rowHeight}px`;
    const connection = connections[row[CONNECTION]];
    made.style.setProperty("--from-x", `${row[CONNECTION] >= 0 ? lifelines[row[CONNECTION]] : 10}px`);

    const delta = at ? row[TIME] - rows[shown[at - 1]][TIME] : 0;
    made.append(element("span", "time", seconds(row[TIME])), element("span", "real", real(row)));
    if (at) made.append(element("span", delta >= 1 ? "delta long" : "delta", delta < 0.0000005 ? "" : `+${span(delta)}`));
    const where = (state.connection < 0 && connection ? connection.alias : "") + (row[CHANNEL] >= 0 ? `/${row[CHANNEL]}` : "");
    made.append(element("span", "channel", where.replace(/^\//, "")));

    const stage = element("div", "stage");
    const name = element("b", "", ...marked(pool[row[NAME]]));
    const text = element("span", "", ...marked(pool[row[TEXT]]));
    if (kind === "model") {
      stage.append(element("div", "note", name, text));
    } else if (kind === "connection" || kind === "fault") {
      stage.append(element("div", "event", name, text));
    } else {
      const label = element("div", "label", name, text);
      if (row[SIZE] >= 0) label.append(element("span", "body", ...marked(preview(bodyOf(row), row[SIZE]))));
      stage.append(label, element("div", "arrow"));
    }
    made.append(stage);
    return made;
  }

  function draw(afresh) {
    if (afresh) {
      for (const old of made.values()) old.remove();
      made.clear();
    }
    const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - OVERSCAN);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + OVERSCAN);
    const wanted = place.get(state.picked);
    for (const [at, old] of made) {
      // The chosen row stays, because assistive technology refers to its id.
      if ((at < first || at >= last) && at !== wanted) {
        old.remove();
        made.delete(at);
      }
    }
    const added = document.createDocumentFragment();
    const add = (at) => {
      if (made.has(at)) return;
      const row = make(at);
      made.set(at, row);
      added.append(row);
    };
    for (let at = first; at < last; at += 1) add(at);
    if (wanted !== undefined) add(wanted);
    canvas.append(added);
    for (const [at, row] of made) {
      const picked = at === wanted;
      if (picked !== row.classList.contains("picked") || !row.hasAttribute("aria-selected")) {
        row.classList.toggle("picked", picked);
        row.setAttribute("aria-selected", picked);
      }
    }
    if (wanted === undefined) list.removeAttribute("aria-activedescendant");
    else list.setAttribute("aria-activedescendant", `e${rows[state.picked][IDS][0]}`);
  }

  let waiting = false;
  list.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw(false);
      drawMap();
    });
  }, { passive: true });

  // --- the strip beside the list: where problems and matches are -------------------------------------------

  const map = $("map");

  function drawMap() {
    const height = list.clientHeight, ratio = window.devicePixelRatio || 1;
    map.width = 12 * ratio;
    map.height = height * ratio;
    const pen = map.getContext("2d");
    if (!pen || !shown.length) return;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const full = shown.length * rowHeight;
    const scale = height / Math.max(full, height);
    const [bad, fault, mark, rail] = ["--bad", "--fault", "--hit", "--line"].map(colour);
    pen.fillStyle = rail;
    if (full > height) pen.fillRect(0, list.scrollTop * scale, 12, Math.max(6, height * scale));
    shown.forEach((index, at) => {
      const row = rows[index], found = hit.has(index);
      if (!row[PROBLEM] && !found) return;
      const y = Math.min(height - 2, at * rowHeight * scale);
      if (found) { pen.fillStyle = mark; pen.fillRect(1, y, 4, 2); }
      if (row[PROBLEM]) { pen.fillStyle = kinds[row[KIND]] === "fault" ? fault : bad; pen.fillRect(6, y, 5, 2); }
    });
  }

  function jump(event) {
    const box = map.getBoundingClientRect();
    list.scrollTop = ((event.clientY - box.top) / box.height) * shown.length * rowHeight - list.clientHeight / 2;
  }
  map.addEventListener("pointerdown", (event) => { jump(event); map.setPointerCapture(event.pointerId); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });

  // --- choosing --------------------------------------------------------------------------------------------

  function reveal(at) {
    const top = at * rowHeight, room = list.clientHeight;
    if (top < list.scrollTop + rowHeight) list.scrollTop = top - rowHeight;
    else if (top + 2 * rowHeight > list.scrollTop + room) list.scrollTop = top + 2 * rowHeight - room;
  }

  /** Choose a row; `visited` makes it a step that Back returns from. */
  function pick(index, open, visited = false) {
    state.picked = index;
    if (open !== undefined) state.open = open;
    if (state.open) showDetail();
    const at = place.get(index);
    if (at !== undefined) reveal(at);
    draw(false);
    tellMatches();
    remember(visited);
  }

  function move(step) {
    if (!shown.length) return;
    const at = place.get(state.picked);
    const next = at === undefined ? (step < 0 ? shown.length - 1 : Math.floor(list.scrollTop / rowHeight)) : at + step;
    pick(shown[Math.max(0, Math.min(shown.length - 1, next))]);
  }

  /** The next of `numbers`, which are in order, after the chosen row; around the end if need be. */
  function cycle(numbers, step) {
    if (!numbers.length) return;
    const after = numbers.findIndex((index) => index > state.picked);
    let at = after < 0 ? numbers.length : after;
    if (step < 0) at = (numbers.includes(state.picked) ? at - 1 : at) - 1;
    pick(numbers[(at + numbers.length) % numbers.length], true);
  }

  const problems = (step) => cycle(shown.filter((index) => rows[index][PROBLEM]), step);

  list.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) pick(shown[Number(row.dataset.at)], true, true);
  });

  // --- one event -------------------------------------------------------------------------------------------

  function heading(...title) {
    const close = button("Close", "small", shut);
    close.setAttribute("aria-keyshortcuts", "Escape");
    return element("header", "", element("h2", "", ...title), close);
  }

  function present(shows) {
    const opened = detail.hidden;
    detail.replaceChildren(...shows);
    detail.hidden = false;
    detail.scrollTop = 0;
    if (opened) resized();
  }

  /** The story of a message; a step opens its event, and the link leaves the other rows out. */
  function storyOf(message) {
    const made = story(data, message, (row) => pick(rowOf.get(row[IDS][0]), true, true));
    const link = element("a", "", `#message=${message}`);
    link.href = `#message=${message}`;
    link.title = "Link to this message";
    made.firstChild.append(link);
    return made;
  }

  function showFailure() {
    state.picked = rowOf.get(Math.max(...[...rowOf.keys()].filter((id) => id < failure.event))) ?? -1;
    state.open = true;
    present([heading("The test failed here"), element("p", "lead", ...seen(failure.test)), ...failed(failure)]);
    if (state.picked >= 0) reveal(place.get(state.picked) ?? 0);
    draw(false);
  }

  function showDetail() {
    const row = rows[state.picked];
    if (!row) return;
    const connection = connections[row[CONNECTION]], kind = kinds[row[KIND]];
    const ids = row[IDS];
    const link = element("a", "", `#e${ids[0]}`);
    link.href = `#e${ids[0]}`;
    link.title = "Link to this event";
    const lead = [`${seconds(row[TIME])} s`];
    if (real(row)) lead.push(`real ${real(row)} s`);
    if (connection) lead.push(row[DIRECTION] === 0 ? `${connection.alias} to broker` : row[DIRECTION] === 1 ? `broker to ${connection.alias}` : connection.alias);
    if (row[CHANNEL] >= 0) lead.push(`channel ${row[CHANNEL]}`);
    if (ids.length > 1) lead.push(`${ids.length} frames`);
    const shows = [heading(...marked(pool[row[NAME]]))];
    shows.push(element("p", "lead", ...seen(lead.join("  \u00b7  ")), "  \u00b7  ", link));
    if (WORDS[pool[row[NAME]]]) shows.push(element("p", "lead", WORDS[pool[row[NAME]]]));
    if (kind !== "method" && pool[row[TEXT]]) shows.push(element("p", "said", ...marked(pool[row[TEXT]])));

    const only = element("div", "focusers");
    const narrow = (text, change) => only.append(button("", "small", () => { change(); controls(); filter(); pick(state.picked); detail.focus(); }));
    const offer = (text, change) => { narrow(text, change); only.lastChild.append(...seen(text)); };
    if (connection && state.connection < 0 && connections.length > 1) offer(`Only ${connection.alias}`, () => { state.connection = row[CONNECTION]; });
    if (row[CHANNEL] > 0 && state.channel < 0) offer(`Only channel ${row[CHANNEL]}`, () => { state.channel = row[CHANNEL]; state.connection = row[CONNECTION]; });
    for (const name of row[QUEUES]) if (state.queue !== name) offer(`Only queue ${pool[name]}`, () => { state.queue = name; });
    if (only.childNodes.length) shows.push(only);

    const titles = { method: "Fields", model: "Facts", frame: "Frame", heartbeat: "Frame" };
    const fields = pool[row[FIELDS]];
    if (fields.length) shows.push(section(titles[kind], "", table(fields, titles[kind], marked)));
    if (row[PROPERTIES] >= 0) {
      const properties = pool[row[PROPERTIES]];
      shows.push(section("Properties", properties.length ? "" : "none", ...(properties.length ? [table(properties, "Properties", marked)] : [])));
    }
    if (row[MESSAGE]) shows.push(storyOf(row[MESSAGE]));
    if (row[SIZE] >= 0) shows.push(bodySection(bodyOf(row), row[SIZE], marked));
    if (connection) {
      const who = ["name", "connection_name", "product", "version", "platform", "virtual_host"].filter((key) => connection[key]);
      shows.push(section(`Connection ${connection.alias}`, "", table(who.map((key) => [0, key, connection[key], "s"]), "Connection", marked)));
    }
    present(shows);
  }

  function shut() {
    state.open = false;
    detail.hidden = true;
    resized();
    list.focus();
  }

  // --- controls --------------------------------------------------------------------------------------------

  function options(select, title, choices) {
    select.replaceChildren();
    const add = (value, text) => {
      const option = element("option", "", text);
      option.value = value;
      select.append(option);
    };
    add(-1, title);
    for (const [value, text] of choices) add(value, text);
  }

  function counted(values) {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
    return counts;
  }

  function named(counts) {
    return [...counts].map(([value, count]) => [value, `${plainly(pool[value]).slice(0, 80)} (${number(count)})`]).sort((a, b) => (a[1] < b[1] ? -1 : 1));
  }

  function fill() {
    const kindCounts = counted(rows.map((row) => row[KIND]));
    kinds.forEach((kind, at) => {
      if (!kindCounts.has(at)) return;
      const box = element("input");
      box.type = "checkbox";
      box.value = at;
      box.addEventListener("change", () => {
        if (box.checked) state.kinds.add(at); else state.kinds.delete(at);
        filter();
      });
      $("kinds").append(element("label", "kind", box, element("span", "", TITLES[kind], element("em", "", number(kindCounts.get(at))))));
    });
    options($("direction"), "Both directions", [[0, "To the broker"], [1, "From the broker"]]);
    const channels = [...counted(rows.map((row) => row[CHANNEL])).keys()].filter((one) => one >= 0).sort((a, b) => a - b);
    options($("channel"), "All channels", channels.map((one) => [one, `Channel ${one}`]));
    options($("method"), "All methods and events", named(counted(rows.map((row) => row[NAME]))));
    options($("queue"), "All queues", named(counted(rows.flatMap((row) => row[QUEUES]))));
    for (const [id, key] of [["direction", "direction"], ["channel", "channel"], ["method", "name"], ["queue", "queue"]]) {
      $(id).addEventListener("change", () => { state[key] = Number($(id).value); filter(); });
    }

    const tab = (at, parts, title) => {
      const made = element("button", "tab", ...parts);
      made.type = "button";
      made.title = plainly(title);
      made.dataset.connection = at;
      made.setAttribute("role", "tab");
      made.setAttribute("aria-controls", "panel");
      made.addEventListener("click", () => choose(at));
      $("tabs").append(made);
    };
    tab(-1, [element("b", "", "All"), element("i", "", number(data.events))], "All connections in one order");
    connections.forEach((connection, at) => {
      tab(at, [element("b", "", ...seen(connection.alias)), ...seen(client(connection)), element("i", "", number(connection.events))], connection.name);
    });

    const stat = (name, ...value) => $("stats").append(element("div", "", element("dt", "", name), element("dd", "", ...value)));
    stat("Events", number(data.events));
    if (data.dropped) stat("Dropped older events", number(data.dropped));
    stat("Connections", number(connections.length));
    stat("Duration", span(Math.max(0, data.ended - data.began)));
    if (data.clock) stat("Clock", ...seen(data.clock));
    if (failure) {
      $("failure").hidden = false;
      $("failure").addEventListener("click", showFailure);
    }
    root.classList.toggle("with-real", rows.some((row) => real(row)));
    const wrong = rows.filter((row) => row[PROBLEM]).length;
    if (wrong) {
      $("problem").hidden = false;
      $("problem").textContent = wrong === 1 ? "1 problem" : `${number(wrong)} problems`;
      $("problem").title = "Go to the next problem";
      $("problem").setAttribute("aria-keyshortcuts", "p");
      $("problem").addEventListener("click", () => problems(1));
    }
  }

  function choose(at) {
    state.connection = at;
    controls();
    filter();
    const where = place.get(state.picked);
    if (where === undefined) list.scrollTop = 0; else reveal(where);
    draw(false);
  }

  /** Make the controls show the state. */
  function controls() {
    for (const box of $("kinds").querySelectorAll("input")) box.checked = state.kinds.has(Number(box.value));
    $("direction").value = state.direction;
    $("channel").value = state.channel;
    $("method").value = state.name;
    $("queue").value = state.queue;
    $("query").value = state.typed || "";
    $("only").checked = state.only;
    for (const one of $("tabs").children) {
      const chosen = Number(one.dataset.connection) === state.connection;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      if (chosen) {
        one.id = "tab";
        $("panel").setAttribute("aria-labelledby", "tab");
      } else one.removeAttribute("id");
    }
  }

  function search(text) {
    state.typed = text;
    state.query = text.toLowerCase();
    filter();
    if (!state.query || hit.has(state.picked)) return;
    // Show the next match from here, without choosing it.
    const from = shown[Math.floor(list.scrollTop / rowHeight)] || 0;
    const next = hits.find((index) => index >= from);
    const near = next === undefined ? hits[0] : next;
    if (near !== undefined) { reveal(place.get(near)); draw(false); }
  }

  let typing = 0;
  $("query").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => search($("query").value), 60);
  });
  $("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(typing);
      if (state.typed !== $("query").value) search($("query").value);
      cycle(hits, event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      list.focus();
    }
  });
  $("bar").addEventListener("submit", (event) => event.preventDefault());
  $("previous").addEventListener("click", () => cycle(hits, -1));
  $("next").addEventListener("click", () => cycle(hits, 1));
  $("only").addEventListener("change", () => { state.only = $("only").checked; filter(); });
  $("unfold").addEventListener("click", () => {
    const open = $("filters").classList.toggle("open");
    $("unfold").setAttribute("aria-expanded", open);
    resized();
  });
  $("reset").addEventListener("click", () => {
    clear();
    controls();
    filter();
    $("query").focus();
  });

  function clear() {
    Object.assign(state, { kinds: new Set(kinds.keys()), direction: -1, channel: -1, name: -1, queue: -1, query: "", typed: "", only: false, message: 0 });
  }

  $("tabs").addEventListener("keydown", (event) => {
    const tabs = [...$("tabs").children], at = tabs.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const chosen = tabs[(to + tabs.length) % tabs.length];
    choose(Number(chosen.dataset.connection));
    chosen.focus();
    chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  const page = () => Math.max(1, Math.floor(list.clientHeight / rowHeight) - 1);
  const LIST_KEYS = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(page()), PageUp: () => move(-page()),
    Home: () => pick(shown[0]), End: () => pick(shown[shown.length - 1]),
    Enter: () => { if (rows[state.picked]) { pick(state.picked, true); detail.focus(); } },
  };
  const PAGE_KEYS = {
    "/": () => { $("query").focus(); $("query").select(); },
    j: () => move(1), k: () => move(-1), n: () => cycle(hits, 1), N: () => cycle(hits, -1), p: () => problems(1), P: () => problems(-1),
    "[": () => choose(state.connection < 0 ? connections.length - 1 : state.connection - 1),
    "]": () => choose(state.connection + 1 < connections.length ? state.connection + 1 : -1),
    "?": () => $("help").click(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "Escape" && state.open) {
      event.preventDefault();
      shut();
      return;
    }
    const action = (document.activeElement === list && shown.length && LIST_KEYS[event.key]) || PAGE_KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    list.focus();
  });
  $("help").addEventListener("click", () => { glossary($("words")); $("keys").showModal(); });

  // --- colours ---------------------------------------------------------------------------------------------

  parts.colours(() => drawMap());

  // --- the address: #e12 chooses an event; filters follow as key=value -------------------------------------

  function remember(visited = false) {
    if (!ready) return;
    const parts = [];
    if (rows[state.picked]) parts.push(`e${rows[state.picked][IDS][0]}`);
    const put = (key, value) => parts.push(`${key}=${encodeURIComponent(wellFormed(value))}`);
    if (state.connection >= 0) put("connection", connections[state.connection].alias);
    if (state.kinds.size < kinds.length) put("kind", [...state.kinds].sort().map((at) => kinds[at]).join(","));
    if (state.direction >= 0) put("direction", state.direction ? "sent" : "received");
    if (state.channel >= 0) put("channel", String(state.channel));
    if (state.name >= 0) put("name", pool[state.name]);
    if (state.queue >= 0) put("queue", pool[state.queue]);
    if (state.typed) put("search", state.typed);
    if (state.only) put("only", "matches");
    if (state.message) put("message", String(state.message));
    written = parts.length ? `#${parts.join("&")}` : "#";
    if (written === (location.hash || "#")) return;
    try { history[visited ? "pushState" : "replaceState"](null, "", written); } catch { /* the page works without its address */ }
  }

  const wellFormed = (text) => text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");

  function recall() {
    clear();
    state.connection = -1;
    let wanted = -1;
    for (const part of location.hash.slice(1).split("&")) {
      const [key, ...rest] = part.split("=");
      let value;
      try { value = decodeURIComponent(rest.join("=")); } catch { continue; }
      const found = /^e(\d+)$/.exec(part);
      if (found) wanted = rowOf.get(Number(found[1])) ?? -1;
      else if (key === "connection") state.connection = connections.findIndex((one) => one.alias === value || one.name === value || one.connection_name === value);
      else if (key === "kind") state.kinds = new Set(value.split(",").map((name) => kinds.indexOf(name)).filter((at) => at >= 0));
      else if (key === "direction") state.direction = ["received", "sent"].indexOf(value);
      else if (key === "channel") state.channel = /^\d+$/.test(value) ? Number(value) : -1;
      else if (key === "name") state.name = pool.indexOf(value);
      else if (key === "queue") state.queue = pool.indexOf(value);
      else if (key === "search") { state.typed = value; state.query = value.toLowerCase(); }
      else if (key === "message") state.message = /^\d+$/.test(value) ? Number(value) : 0;
      else if (key === "only") state.only = value === "matches";
      else if (key === "theme" && THEMES.includes(value)) theme(value);
    }
    controls();
    filter();
    if (wanted >= 0 && !place.has(wanted)) {
      // A link to an event wins over a filter that hides it.
      clear();
      state.connection = -1;
      controls();
      filter();
    }
    if (wanted >= 0) {
      pick(wanted, true);
      list.scrollTop = (place.get(wanted) + 0.5) * rowHeight - list.clientHeight / 2;
      draw(false);
    } else if (state.message && shown.length) {
      state.picked = -1;
      present([heading(`Message ${state.message}`), storyOf(state.message)]);
    } else if (!ready && failure && !location.hash) {
      showFailure();
    } else if (ready === null) {
      state.open = false;
      detail.hidden = true;
    }
  }

  // --- size and paper --------------------------------------------------------------------------------------

  function resized() {
    const at = place.get(state.picked);
    layout();
    draw(true);
    drawMap();
    if (at !== undefined) reveal(at);
  }
  new ResizeObserver(() => { if (ready) resized(); }).observe(list);

  function toPaper() {
    const body = element("tbody");
    for (const index of shown) {
      const row = rows[index], connection = connections[row[CONNECTION]];
      const way = row[DIRECTION] === 0 ? "\u2192" : row[DIRECTION] === 1 ? "\u2190" : "";
      const what = element("td", "", element("b", "", ...seen(pool[row[NAME]])), " ", ...seen(pool[row[TEXT]]));
      if (row[SIZE] >= 0) what.append(" ", ...seen(preview(bodyOf(row), row[SIZE])));
      body.append(element("tr", `k-${kinds[row[KIND]]}${row[PROBLEM] ? " problem" : ""}`,
        element("td", "", `${seconds(row[TIME])} ${real(row) && `(real ${real(row)})`}`),
        element("td", "", `${connection ? connection.alias : ""} ${way} ${row[CHANNEL] >= 0 ? row[CHANNEL] : ""}`), what));
    }
    const head = element("thead", "", element("tr", "", element("th", "", "Time, s"), element("th", "", "Connection, channel"), element("th", "", "Event")));
    const who = connections.map((one) => element("p", "", ...seen(`${one.alias}: ${client(one)}, ${one.name}`)));
    $("paper").replaceChildren(...who, element("table", "", head, body));
  }
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", () => $("paper").replaceChildren());

  // --- begin -----------------------------------------------------------------------------------------------

  let ready = false, written = "";   // `ready` is null while an address is followed
  fill();
  recall();
  ready = true;
  window.addEventListener("hashchange", () => {
    if (location.hash === written) return;
    ready = null;
    state.picked = -1;
    recall();
    ready = true;
    draw(false);
  });
  document.body.dataset.ready = Math.round(performance.now());
})();
