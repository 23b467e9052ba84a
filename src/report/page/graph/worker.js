// worker.js — lays out graphs beside the page, so that it never stands still.

import { layOut } from "./layout.js";

export function serveLayouts() {
  addEventListener("message", ({ data: { number, plan } }) => postMessage({ number, drawing: layOut(plan) }));
}

// A function from a plan to the promise of its drawing. The worker is this same script, which finds no document there.
export function startLayouts() {
  let worker;
  try {
    const script = document.getElementById("program").textContent;
    worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  } catch {
    return async (plan) => layOut(plan); // some browsers start no workers from files
  }
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data: { number, drawing } }) => {
    waiting.get(number)(drawing);
    waiting.delete(number);
  };
  return (plan) =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      worker.postMessage({ number: last, plan });
    });
}
