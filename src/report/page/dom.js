// dom.js — elements made in one call, and what screen readers are told.

function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false) element.append(child);
  return element;
}

// html("button", { class: "quiet", onclick: f }, "text", [more, children])
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, attributes);
  return append(element, children);
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(element, attributes);
  return append(element, children);
}

// Something to press that is not a link to another page.
export function button(label, press, attributes = {}) {
  return html("button", { type: "button", onclick: press, ...attributes }, label);
}

// Instead of a table or plot that would have nothing in it.
export function nothing(text) {
  return html("p", { class: "nothing" }, text);
}

// Tells a screen reader what changed elsewhere on the page.
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}
