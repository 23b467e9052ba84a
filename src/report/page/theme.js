// theme.js — light or dark: as the system says, until the reader says otherwise.

const system = () => matchMedia("(prefers-color-scheme: dark)");

// Some browsers keep nothing for files.
function remembered() {
  try {
    return localStorage.getItem("tenon-theme");
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem("tenon-theme", theme);
  } catch {
    // It holds for this page, then.
  }
}

export function followTheme(button) {
  let chosen = remembered();
  const apply = () => {
    document.documentElement.dataset.theme = chosen ?? (system().matches ? "dark" : "light");
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember(chosen);
    apply();
  });
  system().addEventListener("change", apply);
  apply();
}
