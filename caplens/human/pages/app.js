"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const lang = document.documentElement.lang;
  const send = { method: "POST", headers: { "X-Caplens": "app" }, credentials: "same-origin" };
  let photos = [], sheet = null, shown = 0, total = 0;

  function complain(text) { at("error").textContent = text; at("error").hidden = !text; }

  async function ask(address, options) {
    const answer = await fetch(address, options);
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error || answer.statusText);
    return content;
  }

  function ready() {
    at("photo-count").textContent = photos.length || "";
    at("sheet-name").textContent = sheet ? sheet.name : "";
    at("start").disabled = !sheet;
  }

  at("photos").addEventListener("change", (event) => {
    photos = [...event.target.files].map((file) => [file.webkitRelativePath || file.name, file]);
    ready();
  });
  at("sheet").addEventListener("change", (event) => { sheet = event.target.files[0] || null; ready(); });

  async function walk(entry, path, found) {
    if (entry.isFile) {
      found.push([path + entry.name, await new Promise((resolve, reject) => entry.file(resolve, reject))]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!entries.length) return;
      for (const inner of entries) await walk(inner, path + entry.name + "/", found);
    }
  }

  for (const id of ["drop-photos", "drop-sheet"]) {
    at(id).addEventListener("dragover", (event) => { event.preventDefault(); at(id).classList.add("over"); });
    at(id).addEventListener("dragleave", () => at(id).classList.remove("over"));
    at(id).addEventListener("drop", async (event) => {
      event.preventDefault();
      at(id).classList.remove("over");
      const found = [];
      for (const entry of [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean)) {
        await walk(entry, entry.isFile && id === "drop-photos" ? "photos/" : "", found);
      }
      if (id === "drop-photos") photos = found; else sheet = found.length ? found[0][1] : null;
      ready();
    });
  }

  function show(id) { for (const section of ["put-in", "progress", "found", "gone"]) at(section).hidden = section !== id; }

  async function upload(name, file) {
    await ask(`/upload?name=${encodeURIComponent(name)}`, { ...send, body: file });
  }

  async function check() {
    await ask("/check", send);
    for (;;) {
      const status = await ask("/status");
      at("what").textContent = status.what;
      at("bar").value = status.share;
      if (status.error) throw new Error(status.error);
      if (!status.running) break;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    at("cards").replaceChildren();
    shown = 0;
    await count();
    await more();
    show("found");
  }

  async function count() {
    const counts = (await ask("/status")).counts;
    at("counts").textContent = at("counts").dataset.text.replace(/\{(\w+)\}/g, (_, name) => counts[name]);
  }

  async function run(work) {
    complain("");
    show("progress");
    try { await work(); } catch (error) { complain(error.message); show("put-in"); }
  }

  at("start").addEventListener("click", () => run(async () => {
    let done = 0;
    for (const [name, file] of photos) {
      at("what").textContent = name;
      at("bar").value = done++ / (photos.length + 1);
      await upload(name.includes("/") ? name : `photos/${name}`, file);
    }
    await upload(sheet.name, sheet);
    await check();
  }));
  at("example").addEventListener("click", () => run(async () => { await ask("/example", send); await check(); }));
  at("again").addEventListener("click", () => { show("put-in"); });
  at("quit").addEventListener("click", async () => { await fetch("/quit", send); show("gone"); });
  at("more").addEventListener("click", more);

  async function more() {
    const found = await ask(`/captions?start=${shown}&lang=${lang}`);
    for (const content of found.cards) at("cards").append(card(content));
    shown += found.cards.length;
    total = found.total;
    at("more").hidden = shown >= total;
  }

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function card(content) {
    const made = element("article", "check");
    if (content.image) {
      const image = element("img");
      image.src = `/image/${content.row}`;
      image.alt = at("cards").dataset.alt;
      image.loading = "lazy";
      made.append(image);
    }
    const words = element("div");
    const verdict = element("p", "verdict"), reasons = element("ul"), text = element("textarea"), kept = element("output", "kept");
    text.value = content.caption;
    text.rows = 2;
    text.lang = content.lang;
    text.dir = content.dir;
    text.setAttribute("aria-label", `${at("cards").dataset.label}: ${content.id}`);
    words.append(verdict, text, reasons, kept, element("p", "note", [content.id, content.lang].filter(Boolean).join(" · ")));
    made.append(words);
    fill(content);

    function fill(now) {
      made.dataset.verdict = now.verdict;
      verdict.textContent = at("cards").dataset[now.verdict];
      reasons.replaceChildren(...now.reasons.map((reason) => element("li", "", reason)));
    }

    let last = text.value, waiting = null;
    async function save() {
      if (text.value === last) return;
      last = text.value;
      const body = new URLSearchParams({ row: content.row, caption: last });
      try {
        fill(await ask(`/correct?lang=${lang}`, { ...send, body }));
        kept.textContent = at("cards").dataset.saved;
      } catch (error) { complain(error.message); }
    }
    text.addEventListener("input", () => { kept.textContent = ""; clearTimeout(waiting); waiting = setTimeout(save, 700); });
    text.addEventListener("change", save);
    return made;
  }

  for (const id of ["xlsx", "csv"]) at(id).href += `?lang=${lang}`;
})();
