// main.js — starts the page: reads the data and shows it.
const data = JSON.parse(document.getElementById("data").textContent);
document.title = `${data.model} · Tenon report`;
document.getElementById("page").textContent = data.model;
