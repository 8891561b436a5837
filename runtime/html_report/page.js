(function () {
  "use strict";
  var table = document.getElementById("summary-table");
  if (!table) return;
  var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows), heads = table.tHead.rows[0].cells;
  var order = rows.slice(), told = document.getElementById("summary-told");
  function number(row, column) { return Number(row.cells[column].textContent); }
  function sort(column) {
    var head = heads[column], now = head.getAttribute("aria-sort");
    var down = now === "descending" ? "ascending" : now === "ascending" ? "" : column ? "descending" : "ascending";
    Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
    var sorted = order.slice();
    if (down) {
      head.setAttribute("aria-sort", down);
      sorted.sort(function (a, b) {
        if (!column) {
          var x = a.cells[0].textContent, y = b.cells[0].textContent;
          return (down === "ascending" ? 1 : -1) * x.localeCompare(y, "en", { numeric: true });
        }
        var p = number(a, column), q = number(b, column);
        if (isNaN(p) || isNaN(q)) return isNaN(p) - isNaN(q);
        return down === "ascending" ? p - q : q - p;
      });
    }
    sorted.forEach(function (row) { body.appendChild(row); });
  }
  Array.prototype.forEach.call(heads, function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "Sort";
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () { sort(column); });
  });
  var tools = document.getElementById("summary-tools"), input = document.getElementById("summary-filter");
  tools.hidden = false;
  input.addEventListener("input", function () {
    var words = input.value.trim().toLowerCase(), seen = 0;
    rows.forEach(function (row) {
      var shown = row.cells[0].textContent.toLowerCase().indexOf(words) >= 0;
      row.hidden = !shown;
      seen += shown ? 1 : 0;
    });
    told.textContent = words ? seen + " of " + rows.length + " rows" : "";
  });
})();
