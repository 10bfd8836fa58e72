"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const lang = document.documentElement.lang;
  const send = { method: "POST", headers: { "X-Caplens": "app" }, credentials: "same-origin" };
  const pending = new Set();
  let photos = [], sheet = null, shown = 0, total = 0, number = 0, unsaved = false;

  function filled(place, values) { return place.dataset.text.replace(/\{(\w+)\}/g, (_, name) => values[name]); }

  function complain(text) { at("error").textContent = text; at("error").hidden = !text; }

  async function ask(address, options) {
    const answer = await fetch(address, options);
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error || answer.statusText);
    return content;
  }

  function ready() {
    at("photo-count").textContent = photos.length ? filled(at("photo-count"), { count: photos.length }) : "";
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
    pending.clear();
    unsaved = false;
    at("saved").textContent = "";
    at("counts").textContent = filled(at("counts"), (await ask("/status")).counts);
    await more();
    show("found");
  }

  async function run(work) {
    complain("");
    show("progress");
    try { await work(); } catch (error) { complain(error.message); show("put-in"); }
  }

  at("start").addEventListener("click", () => run(async () => {
    await ask("/clear", send);
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
  function mayLeave() { return !(unsaved || pending.size) || confirm(at("saved").dataset.unsaved); }
  at("again").addEventListener("click", () => { if (mayLeave()) { complain(""); show("put-in"); } });
  at("quit").addEventListener("click", async () => {
    if (!mayLeave()) return;
    unsaved = false;
    pending.clear();
    complain("");
    await fetch("/quit", send);
    show("gone");
  });
  window.addEventListener("beforeunload", (event) => { if (unsaved || pending.size) event.preventDefault(); });

  async function download(name) {
    complain("");
    try {
      // What is still being typed or judged belongs into the sheet too.
      for (const save of [...pending]) await save();
      if (pending.size) return;
      const answer = await fetch(`/export/${name}?lang=${lang}&check=${number}`);
      if (!answer.ok) throw new Error((await answer.json()).error);
      const link = element("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = decodeURIComponent(answer.headers.get("x-name"));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      unsaved = false;
      at("saved").textContent = filled(at("saved"), { name: link.download, count: answer.headers.get("x-changed") });
    } catch (error) { complain(error.message); }
  }
  at("xlsx").addEventListener("click", () => download("captions.xlsx"));
  at("csv").addEventListener("click", () => download("captions.csv"));
  at("more").addEventListener("click", () => more().catch((error) => complain(error.message)));

  async function more() {
    const found = await ask(`/captions?start=${shown}&lang=${lang}&check=${number}`);
    number = found.check;
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
      const frame = element("button", "photo"), image = element("img");
      image.src = `/image/${content.row}?check=${number}`;
      image.alt = at("cards").dataset.alt;
      image.loading = "lazy";
      frame.append(image);
      frame.addEventListener("click", () => made.classList.toggle("large"));
      made.append(frame);
    }
    const words = element("div");
    const verdict = element("p", "verdict"), reasons = element("ul"), text = element("textarea"), kept = element("output", "kept");
    const accept = element("button", "plain", at("cards").dataset.accept);
    text.value = content.caption;
    text.rows = 2;
    text.lang = content.lang;
    text.dir = content.dir;
    text.setAttribute("aria-label", `${at("cards").dataset.label}: ${content.id}`);
    const about = [...new Set([content.id, content.name, content.lang])].filter(Boolean).join(" · ");
    const suggestion = element("p", "note"), taken = element("button", "plain", at("cards").dataset.take);
    words.append(verdict, text, reasons, suggestion, taken, accept, kept, element("p", "note", about));
    made.append(words);
    fill(content);

    function fill(now) {
      made.dataset.verdict = now.verdict;
      verdict.textContent = at("cards").dataset[now.verdict];
      reasons.replaceChildren(...now.reasons.map((reason) => element("li", "", reason)));
      accept.hidden = now.verdict === "fine";
      suggestion.hidden = taken.hidden = !now.suggestion || now.suggestion === text.value;
      suggestion.replaceChildren(`${at("cards").dataset.shows}: `, element("bdi", "", now.suggestion));
      taken.onclick = () => { text.value = now.suggestion; save(); };
      if (now.counts) at("counts").textContent = filled(at("counts"), now.counts);
    }

    const checked = number;
    let last = text.value, waiting = null, asking = null;
    async function judge(fields) {
      try {
        fill(await ask(`/correct?lang=${lang}`, { ...send, body: new URLSearchParams({ row: content.row, check: checked, ...fields }) }));
        kept.textContent = at("cards").dataset.saved;
        unsaved = true;
        at("saved").textContent = "";
        return true;
      } catch (error) {
        kept.textContent = error.message;
        return false;
      }
    }
    async function save() {
      clearTimeout(waiting);
      await asking;
      const caption = text.value;
      if (caption === last) { pending.delete(save); return; }
      asking = judge({ caption });
      if (await asking) last = caption;
      if (text.value === last) pending.delete(save);
    }
    text.addEventListener("input", () => {
      kept.textContent = "";
      pending.add(save);
      clearTimeout(waiting);
      waiting = setTimeout(save, 700);
    });
    text.addEventListener("change", save);
    accept.addEventListener("click", async () => { await save(); await judge({ accept: "1" }); });
    return made;
  }
})();
