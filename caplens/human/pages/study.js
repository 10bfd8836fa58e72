"use strict";
// Everything works without this script. It adds keys, the time spent on an item, and patience where there is no connection.
(() => {
  const form = document.getElementById("answer");
  if (!form) return;
  const offline = document.getElementById("offline");
  const save = form.querySelector("button.save");
  let spent = 0, since = document.hidden ? null : performance.now(), sending = false;

  document.addEventListener("visibilitychange", () => {
    if (document.hidden && since !== null) { spent += performance.now() - since; since = null; }
    if (!document.hidden && since === null) since = performance.now();
  });

  for (const image of form.querySelectorAll("img.judged")) {
    image.addEventListener("error", () => { image.alt = image.dataset.missing; });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.closest("textarea, input[type=text]");
    if (!typing && /^[0-9]$/.test(event.key)) {
      const choice = form.querySelector(`input[data-key="${event.key}"]`);
      if (choice) { choice.checked = true; choice.focus(); event.preventDefault(); }
    } else if (event.key === "Enter" && !event.shiftKey && !event.target.closest("button, a, summary")) {
      event.preventDefault();
      form.requestSubmit(save);
    }
  });

  async function send(body) {
    for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
      try {
        const answer = await fetch(form.action, { method: "POST", body, redirect: "manual", credentials: "same-origin" });
        if (answer.status < 500) return answer;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      offline.hidden = false;
      await new Promise((resolve) => {
        const again = setTimeout(resolve, wait);
        addEventListener("online", () => { clearTimeout(again); resolve(); }, { once: true });
      });
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (sending) return;
    sending = true;
    save.disabled = true;
    const now = since === null ? 0 : performance.now() - since;
    form.elements.seconds.value = ((spent + now) / 1000).toFixed(1);
    const answer = await send(new URLSearchParams(new FormData(form)));
    if (answer.status === 422) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      const script = document.createElement("script");
      script.src = "/static/study.js";
      document.body.append(script);
    } else {
      location.replace("/task");
    }
  });

  addEventListener("pageshow", (event) => {
    // Of a page that the browser kept, the item may be answered already.
    if (event.persisted) location.reload();
  });
})();
