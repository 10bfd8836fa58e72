"use strict";
for (const gallery of document.querySelectorAll(".gallery")) {
  const cases = [...gallery.querySelectorAll(".case")];
  const filters = [...gallery.querySelectorAll("[data-filter]")];
  const told = gallery.querySelector("output");
  const fits = {
    why: (one, wanted) => one.dataset.why.split("\n").includes(wanted),
    lang: (one, wanted) => one.dataset.lang === wanted,
    verdict: (one, wanted) => one.dataset.verdict === wanted,
    system: (one, wanted) => one.dataset.system.split("\n").includes(wanted),
    text: (one, wanted) => [...one.querySelectorAll(".caption, li")].some((text) => text.textContent.toLocaleLowerCase().includes(wanted.toLocaleLowerCase())),
  };
  const more = gallery.querySelector(".more");
  let most = 24;
  const apply = () => {
    let found = 0;
    for (const one of cases) {
      const fit = filters.every((filter) => !filter.value || fits[filter.dataset.filter](one, filter.value));
      found += fit ? 1 : 0;
      one.hidden = !fit || found > most;
    }
    const count = told.dataset.count.replace("{count}", found).replace("{total}", cases.length);
    told.value = found > most ? `${count}, ${told.dataset.shown.replace("{shown}", most)}` : count;
    more.hidden = found <= most;
  };
  more.addEventListener("click", () => {
    most = Infinity;
    apply();
  });
  for (const filter of filters) filter.addEventListener("input", apply);
  gallery.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  apply();
}
const save = (plot, name) => {
  const copy = plot.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("style", "color: #16161a; --rule: #dddcd5; font-family: sans-serif; background: white");
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
for (const button of document.querySelectorAll("[data-svg]")) {
  button.addEventListener("click", () => {
    const plots = [...button.closest("figure").querySelectorAll("svg")];
    plots.forEach((plot, place) => save(plot, `${button.dataset.svg}${plots.length > 1 ? `-${place + 1}` : ""}.svg`));
  });
}
