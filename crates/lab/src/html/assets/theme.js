// Colours and themes, for the report and the playground. Dark or light follows the system until the button says otherwise; both pages remember that.
"use strict";

const probe = document.body.appendChild(document.createElement("span"));
probe.hidden = true;
// A colour of the style sheet as the canvas understands it: custom properties are not resolved where they are defined.
const colour = (name) => {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
};

const setUpTheme = (redraw) => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const store = (theme) => {
    try {
      if (theme === undefined) return localStorage.getItem("anabranch-theme");
      localStorage.setItem("anabranch-theme", theme);
    } catch {
      // A page from a disk may have no storage: then the choice lasts as long as the page.
    }
    return null;
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const set = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    button.textContent = isDark() ? "Light" : "Dark";
    redraw();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    set(isDark() ? "light" : "dark");
    store(root.dataset.theme);
  });
  dark.addEventListener("change", () => set());
  set(store());
};
