// worker.js — lays out graphs beside the page, so that it never stands still.

import { layOut } from "./layout.js";

export function serveLayouts() {
  addEventListener("message", ({ data: { number, plan } }) => postMessage({ number, drawing: layOut(plan) }));
}

const layOutHere = async (plan) => layOut(plan);

// A function from a plan to the promise of its drawing. The worker is this same script, which finds no document there.
export function startLayouts() {
  let worker;
  try {
    const script = document.getElementById("program").textContent;
    worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  } catch {
    return layOutHere; // some browsers start no workers from files
  }
  const waiting = new Map(); // number → a plan, and what takes its drawing
  let last = 0;
  let hasFailed = false;
  worker.onmessage = ({ data: { number, drawing } }) => {
    waiting.get(number).resolve(drawing);
    waiting.delete(number);
  };
  // It did not load, or a layout threw: what it owes, and all that follows, is done here.
  worker.onerror = () => {
    hasFailed = true;
    worker.terminate();
    for (const { plan, resolve } of waiting.values()) resolve(layOutHere(plan));
    waiting.clear();
  };
  return (plan) =>
    hasFailed
      ? layOutHere(plan)
      : new Promise((resolve) => {
          waiting.set(++last, { plan, resolve });
          worker.postMessage({ number: last, plan });
        });
}
