(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var shown = document.getElementById("shown"), told = document.getElementById("told");
  var only = document.getElementById("only"), gone = document.getElementById("gone");
  var choices = document.getElementById("choices");
  var source = all(".line"), buttons = all("button[data-stage]"), tabs = all("[role=tab]");
  var order = Object.keys(data.stages).map(Number).sort(function (a, b) { return a - b; });
  var state = { stage: order[0], file: -1, line: 0, tab: "stage" };

  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }
  function element(tag, kind, text) {
    var made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function textOf(id) { var line = data.lines[id]; return typeof line === "string" ? line : line[0]; }
  function isOf(id, file, line) { var of = data.lines[id]; return typeof of !== "string" && of[1] === file && of[2] === line; }
  function plain(text) { return text.replace(/%(\d+|[A-Za-z_$.][\w$.]*_\d+)/g, "%"); }
  function sourceText(file, line) {
    var row = document.getElementById("s" + file + "-" + line);
    return row ? row.querySelector("code").textContent.trim() : "";
  }

  // ---------------------------------------------------------------- lines of listings

  var WORD = /("(?:[^"\\]|\\.)*")|(%[\w$.]+)|(^\s*(?:[%\w$., :]+ = )?)([a-z_]+\.[a-z_.0-9]+)|(;.*$)/g;
  function coloured(row, text) {
    if (/^[\w.$@"]+:/.test(text)) { row.appendChild(element("span", "label", text)); return; }
    var at = 0, found, rest;
    WORD.lastIndex = 0;
    while ((found = WORD.exec(text))) {
      if (!found[0]) { WORD.lastIndex += 1; continue; }
      if (found.index > at) row.appendChild(document.createTextNode(text.slice(at, found.index)));
      if (found[2]) row.appendChild(element("span", "value", found[2]));
      else if (found[4]) {
        rest = found[3];
        rest.split(/(%[\w$.]+)/).forEach(function (part) {
          if (part) row.appendChild(part[0] === "%" ? element("span", "value", part) : document.createTextNode(part));
        });
        row.appendChild(element("span", "op", found[4]));
      } else row.appendChild(found[5] ? element("span", "note", found[5]) : document.createTextNode(found[0]));
      at = found.index + found[0].length;
    }
    row.appendChild(document.createTextNode(text.slice(at)));
  }
  function lineOf(id, kind) {
    var row = element("div", kind), of = data.lines[id];
    coloured(row, textOf(id));
    if (typeof of !== "string") {
      row.dataset.p = of[1] + "-" + of[2];
      row.title = data.files[of[1]] + ":" + of[2];
      if (of[1] === state.file && of[2] === state.line) row.classList.add("of");
    }
    return row;
  }
  function listing(ids) {
    var block = element("div", "ir");
    ids.forEach(function (id) { block.appendChild(lineOf(id)); });
    return block;
  }
  function withSource(ids) {  // each run of instructions below the line that it is of
    var block = element("div", "ir"), last = "";
    ids.forEach(function (id) {
      var of = data.lines[id], key = typeof of === "string" ? "" : of[1] + "-" + of[2];
      if (key && key !== last) {
        var head = element("div", "source", of[2] + ": " + sourceText(of[1], of[2]));
        head.dataset.p = key;
        block.appendChild(head);
      }
      if (key) last = key;
      block.appendChild(lineOf(id));
    });
    return block;
  }

  // ---------------------------------------------------------------- what is shown

  function showStage() {
    var stage = data.stages[state.stage], block = element("div", "ir"), isNew = {}, went = {}, first = null;
    (stage.new || []).forEach(function (range) { for (var k = range[0]; k < range[1]; k += 1) isNew[k] = true; });
    if (gone.checked) (stage.gone || []).forEach(function (entry) { went[entry[0]] = entry[1]; });
    var count = 0, chosen = only.checked && state.line;
    stage.ids.concat([-1]).forEach(function (id, k) {
      (went[k] || []).forEach(function (old) {
        if (!chosen || isOf(old, state.file, state.line)) block.appendChild(lineOf(old, "went"));
      });
      if (id < 0) return;
      if (isOf(id, state.file, state.line)) count += 1;
      else if (chosen) return;
      var row = lineOf(id, isNew[k] ? "new" : "");
      block.appendChild(row);
      if (!first && row.classList.contains("of")) first = row;
    });
    if (stage.cut) block.appendChild(element("div", "note", "… " + stage.cut + " more lines are not shown"));
    var words = "after " + stage.name;
    var fresh = Object.keys(isNew).length, lost = (stage.gone || []).reduce(function (n, e) { return n + e[1].length; }, 0);
    if (!stage.new) words += ": " + (stage.cut ? "the first " : "") + stage.ids.length + " lines";
    else words += ": " + fresh + " new lines, " + lost + " went" + (stage.skipped ? " (of this and of runs left out)" : "");
    if (state.line) words += "; " + count + " of line " + state.line;
    told.textContent = words;
    put(block);
    if (!first && stage.new && stage.new.length && !chosen) first = block.children[Math.max(0, stage.new[0][0] - 2)];
    if (first) shown.scrollTop = Math.max(0, first.offsetTop - shown.offsetTop - 60);
  }
  function put(node) { shown.textContent = ""; shown.appendChild(node); shown.scrollTop = 0; }
  function card(title, stage, content) {
    var made = element("div", "card-of-view"), head = element("h4");
    if (stage !== null) {
      var button = element("button", "", title);
      button.type = "button";
      button.addEventListener("click", function () { state.tab = "stage"; choose(stage); });
      head.appendChild(button);
    } else head.textContent = title;
    made.appendChild(head);
    made.appendChild(content);
    return made;
  }
  function showLine() {
    var block = element("div", "by-line"), before = null, had = false, old = [];
    if (!state.line) {
      told.textContent = "";
      block.appendChild(element("p", "empty", "Choose a line of the program: its IR after each pass that changed it, and its instructions, are shown here."));
      return put(block);
    }
    order.forEach(function (k) {
      var stage = data.stages[k], ids = stage.ids.filter(function (id) { return isOf(id, state.file, state.line); });
      var key = ids.map(function (id) { return plain(textOf(id)); }).join("\n");
      if (key === before) return;
      if (ids.length) {
        var part = listing(ids), rest = old.slice();
        ids.forEach(function (id, n) {
          var at = rest.findIndex(function (other) { return plain(textOf(other)) === plain(textOf(id)); });
          if (at >= 0) rest.splice(at, 1);
          else if (old.length && stage.new) part.children[n].classList.add("fresh");
        });
        if (stage.new) rest.forEach(function (other) { part.appendChild(lineOf(other, "went")); });
        block.appendChild(card("after " + stage.name, k, part));
      }
      else if (had) block.appendChild(card("after " + stage.name, k, element("p", "empty", "nothing is left of it")));
      had = had || ids.length > 0;
      old = ids;
      before = key;
    });
    told.textContent = "line " + state.line + ": " + sourceText(state.file, state.line);
    if (!had) block.appendChild(element("p", "empty", "No op is of this line: it declares, comments or closes, or it is in a unit that this page does not have."));
    put(block);
  }
  function showLoops() {
    var block = element("div");
    var chosen = data.loops.filter(function (loop) {
      return !only.checked || !state.line || loop.places.some(function (p) { return p[0] === state.file && p[1] === state.line; });
    });
    chosen.forEach(function (loop, k) {
      var lines = loop.places.map(function (p) { return p[1]; }).sort(function (a, b) { return a - b; });
      var words = "loop of " + loop.instructions + " instructions";
      if (lines.length) words += ", line" + (lines.length > 1 ? "s " : " ") + lines.join(", ");
      words += loop.registers ? ", vectors (" + loop.registers + ")" : ", scalar";
      if (loop.calls.length) words += ", calls " + loop.calls.join(", ");
      if (loop.share) words += ", of a line with " + Math.round(100 * loop.share) + "% of the time";
      if (loop.depth > 1) words += ", in " + (loop.depth - 1) + " more";
      block.appendChild(card(words, null, withSource(loop.ids)));
    });
    told.textContent = chosen.length + " innermost loops of what is evaluated, instructions below the lines that they are of";
    if (!chosen.length) block.appendChild(element("p", "empty", "There is no loop" + (only.checked && state.line ? " of this line." : ".")));
    put(block);
  }

  function show() {
    tabs.forEach(function (tab) {
      var on = tab.id === "tab-" + state.tab;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      if (on) shown.setAttribute("aria-labelledby", tab.id);
    });
    buttons.forEach(function (button) {
      var stage = data.stages[button.dataset.stage], row = button.parentNode, on = Number(button.dataset.stage) === state.stage;
      row.classList.toggle("chosen", on && state.tab === "stage");
      if (on && state.tab === "stage") button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
      row.classList.toggle("touched", Boolean(state.line) && touches(stage));
    });
    source.forEach(function (row) {
      var on = isChosen(row);
      row.classList.toggle("chosen", on);
      row.setAttribute("aria-selected", String(on));
      if (on) row.parentNode.setAttribute("aria-activedescendant", row.id);
    });
    choices.hidden = state.tab === "line";
    gone.parentNode.hidden = state.tab !== "stage";
    only.parentNode.hidden = !state.line;
    document.getElementById("touched-key").hidden = !state.line;
    ({ stage: showStage, line: showLine, loops: showLoops })[state.tab]();
  }
  function touches(stage) {
    function of(id) { return isOf(id, state.file, state.line); }
    if (!stage.new) return stage.ids.some(of);
    return stage.new.some(function (range) { return stage.ids.slice(range[0], range[1]).some(of); })
      || (stage.gone || []).some(function (entry) { return entry[1].some(of); });
  }
  function isChosen(row) { return Number(row.dataset.file) === state.file && Number(row.dataset.line) === state.line; }
  function choose(stage) { state.stage = stage; show(); }
  function chooseLine(file, line, again) {
    if (again && state.file === file && state.line === line) { state.file = -1; state.line = 0; }
    else { state.file = file; state.line = line; }
    show();
    var row = document.getElementById("s" + state.file + "-" + state.line);
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  // ---------------------------------------------------------------- what is clicked, and typed

  buttons.forEach(function (button, k) {
    button.addEventListener("click", function () { state.tab = "stage"; choose(Number(button.dataset.stage)); });
    button.addEventListener("keydown", function (event) {
      var next = event.key === "ArrowDown" ? buttons[k + 1] : event.key === "ArrowUp" ? buttons[k - 1] : null;
      if (next) { next.focus(); next.click(); event.preventDefault(); }
    });
  });
  all(".lines").forEach(function (list) {
    list.addEventListener("click", function (event) {
      var row = event.target.closest(".line");
      if (row && !event.target.closest(".remarks")) chooseLine(Number(row.dataset.file), Number(row.dataset.line), true);
    });
    list.addEventListener("keydown", function (event) {
      var rows = Array.prototype.slice.call(list.children), at = rows.findIndex(isChosen), next = at;
      if (event.key === "ArrowDown") next = at + 1;
      else if (event.key === "ArrowUp") next = Math.max(0, at - 1);
      else if (event.key === "Home") next = 0;
      else if (event.key === "End") next = rows.length - 1;
      else if (event.key === "Escape") { chooseLine(-1, 0); return; }
      else if (event.key === "Enter") { state.tab = "line"; show(); shown.focus(); event.preventDefault(); return; }
      else return;
      event.preventDefault();
      if (rows[next]) chooseLine(Number(rows[next].dataset.file), Number(rows[next].dataset.line));
    });
  });
  shown.addEventListener("click", function (event) {
    var row = event.target.closest("[data-p]");
    if (!row || String(window.getSelection())) return;
    var place = row.dataset.p.split("-").map(Number), top = shown.scrollTop;
    chooseLine(place[0], place[1], state.tab !== "line");
    shown.scrollTop = top;
  });
  tabs.forEach(function (tab, k) {
    tab.addEventListener("click", function () { state.tab = tab.id.slice(4); show(); });
    tab.addEventListener("keydown", function (event) {
      var step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      var next = tabs[(k + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
  only.addEventListener("change", show);
  gone.addEventListener("change", show);
  var toggle = document.getElementById("all-remarks");
  if (toggle) toggle.addEventListener("change", function () {
    document.getElementById("source").classList.toggle("all", toggle.checked);
  });
  document.body.classList.add("scripted");
  show();
})();
