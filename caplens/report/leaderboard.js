"use strict";
const body = document.querySelector(".board tbody");
const rows = [...body.rows];
const search = document.getElementById("search");
const kind = document.getElementById("kind");

function filter() {
  const wanted = search.value.trim().toLowerCase();
  for (const row of rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted) || (kind.value !== "" && row.dataset.kind !== kind.value);
  }
}
const benchmarks = document.getElementById("benchmarks");
if (benchmarks) benchmarks.addEventListener("change", () => document.querySelector(".board").classList.toggle("only-run", benchmarks.value === ""));
search.addEventListener("input", filter);
kind.addEventListener("change", filter);
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());

for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => {
    const column = Number(button.dataset.sort);
    const pressed = button.getAttribute("aria-pressed") === "true";
    for (const other of document.querySelectorAll("[data-sort]")) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(!pressed));
    const value = (row) => parseFloat(row.cells[column].dataset.value || row.cells[column].textContent) || -Infinity;
    const ordered = pressed ? rows : [...rows].sort((a, b) => value(b) - value(a));
    body.append(...ordered);
  });
}
