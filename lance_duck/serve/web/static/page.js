// Small additions to pages that work without them: run SQL with Ctrl+Enter, cancel, and sort rows.
"use strict";

const editor = document.querySelector(".editor");

if (editor) {
  const box = editor.querySelector("textarea");
  box.setSelectionRange(box.value.length, box.value.length);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.requestSubmit(editor.querySelector(event.shiftKey ? "[value=explain]" : "[value=run]"));
    }
  });
  editor.addEventListener("submit", (event) => {
    if (event.submitter?.name === "action") {
      showProgress();
    }
  });
}

function showProgress() {
  const began = performance.now();
  const line = document.createElement("p");
  line.className = "note";
  line.setAttribute("role", "status");
  const time = document.createElement("span");
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.className = "plain";
  cancel.textContent = "Cancel";
  line.append("Running… ", time, " ", cancel);
  editor.append(line);
  const timer = setInterval(() => {
    time.textContent = `${((performance.now() - began) / 1000).toFixed(1)} s`;
  }, 100);
  const end = () => {
    clearInterval(timer);
    line.remove();
  };
  cancel.addEventListener("click", () => {
    window.stop();  // the server notices the closed connection, and interrupts the statement
    end();
  });
  window.addEventListener("pagehide", end, { once: true });
}

for (const table of document.querySelectorAll("[aria-label=Result] table")) {
  table.querySelectorAll("thead th").forEach((head, column) => makeSortable(table, head, column));
}

function makeSortable(table, head, column) {
  const button = document.createElement("button");
  button.title = "Sort the rows of this page";
  button.append(head.firstChild);
  head.prepend(button);
  button.addEventListener("click", () => {
    const isDescending = head.getAttribute("aria-sort") === "ascending";
    for (const each of table.querySelectorAll("th[aria-sort]")) {
      each.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    sortRows(table.tBodies[0], column, isDescending ? -1 : 1, head.classList.contains("number"));
  });
}

function sortRows(body, column, direction, isNumber) {
  const keyed = Array.from(body.rows, (row) => {
    const cell = row.cells[column];
    const text = cell.textContent.trim();
    return { row, isNull: cell.querySelector(".null") !== null, key: isNumber ? Number(text) : text };
  });
  keyed.sort((a, b) => {
    if (a.isNull || b.isNull) {
      return a.isNull - b.isNull;
    }
    return direction * (isNumber ? a.key - b.key : a.key.localeCompare(b.key));
  });
  body.append(...keyed.map((each) => each.row));
}
