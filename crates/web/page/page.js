// The page: it joins the controls, the sides, the tours and the address.

const byId = (id) => document.getElementById(id);
const SIDES_MAX = 2;

const state = {
  scene: defaults(),
  laws: [{ name: "anabranch", settings: {} }, null],
  // What is shown: the sliders, or variants of a file of the repository, of a text, or of a text that was made of a file.
  text: null,
  file: null,
  variants: [[]],
  tour: null,
};
let about = null;
let files = new Map();
let sides = [];
let view = null;

// Messages.

const fail = (message) => {
  byId("error").textContent = message;
  byId("error").hidden = message === "";
};
const say = (message) => { byId("told").textContent = message; };

const told = {
  fail,
  look: (time) => showPackets(time),
  charts: () => sides.map(({ charts }) => charts),
  opened: ({ variants }) => {
    state.variants = [variants[0]];
    listVariants(variants);
    wanted().slice(0, SIDES_MAX).forEach(({ title, request }, index) => sides[index].name(title, request));
  },
  change: (key, value) => changeScene(key, value),
  fit: ({ picture, handles }) => handles.fit(picture.svg, shownText() === null),
  progress: (side, part, { events }) => {
    const at = sides.indexOf(side);
    if (at < 0) return;
    side.part = part;
    byId("progress").value = Math.min(...sides.map((one) => one.part ?? 0));
    if (part < 1) byId("told").textContent = `${events.toLocaleString("en")} events`;
  },
};

// Running.

// The path that a file calls `name`, relative to its own folder.
const resolved = (file, name) => {
  const parts = file.split("/").slice(0, -1);
  for (const part of name.split("/")) {
    if (part === ".." && parts.length > 0) parts.pop();
    else parts.push(part);
  }
  return parts.join("/");
};

// The files that a text names, and those that these name.
const basesOf = (file, text, bases = {}) => {
  for (const [, name] of text.matchAll(/["']([^"'\s]+\.[a-z]+)["']/g)) {
    const base = resolved(file, name);
    if (!files.has(base) || Object.hasOwn(bases, base)) continue;
    bases[base] = files.get(base);
    basesOf(base, bases[base], bases);
  }
  return bases;
};

// Whether a file takes the law that the page has chosen.
const takesLaw = (text) => text.includes("$LAW");

// The text that is shown, without its law; nothing if the sliders are.
const shownText = () => state.text ?? (state.file === null ? null : files.get(state.file));

// It as a file of a request.
const fileOf = (law, name = state.file ?? "scenario.toml", shown = shownText()) => {
  const text = shown.replaceAll('name = "$LAW"', tomlOf(law)).replaceAll("$LAW", law.name).replaceAll("$RIVAL", "cubic");
  return { name, text, bases: basesOf(name, text), laws: lawsIn(text) };
};

// The sides that are wanted: a title and a request each.
const wanted = () => {
  // The first variant is run by the request that tells what variants there are.
  const opens = (variant) => (variant.length === 0 ? { opens: true } : {});
  const side = (title, file, variant) => ({ title, request: { ask: "run", file, variant: variant ?? [], ...(variant ? opens(variant) : {}), ...(view ? { view } : {}) } });
  const laws = state.laws.filter(Boolean);
  const text = shownText();
  if (text === null) {
    return laws.map((law) => {
      const toml = sceneToml(state.scene, law);
      return side(law.name, { name: "scenario.toml", text: toml, laws: lawsIn(toml) });
    });
  }
  // Two laws on one variant, or two variants.
  if (takesLaw(text) && laws.length > 1) return laws.map((law) => side([law.name, ...state.variants[0]].join(", "), fileOf(law), state.variants[0]));
  const file = fileOf(laws[0]);
  const name = state.text === null ? file.name.split("/").pop() : "this text";
  return state.variants.map((variant) => side(variant.length > 0 ? variant.join(", ") : name, file, variant));
};

let runs = 0;
let firstPicture = null;
const run = async () => {
  const number = ++runs;
  warming?.stop();
  stopFilm();
  fail("");
  const all = wanted().slice(0, SIDES_MAX);
  while (sides.length > all.length) sides.pop().leave();
  while (sides.length < all.length) {
    const side = new Side(told);
    byId("sides").append(side.place);
    byId("networks").append(side.stage);
    byId("numbers").append(side.numbers);
    side.handles.show(state.scene);
    sides.push(side);
  }
  const missing = [...new Set(all.flatMap(({ request }) => missingIn(request.file.text)))];
  if (missing.length > 0) return stayEmpty(all, missingLaw(missing));
  byId("stop").hidden = false;
  sides.forEach((side) => { side.part = 0; });
  byId("toml").value = all[0].request.file.text;
  byId("export-toml-beside").hidden = all.length < 2;
  showMode();
  const answers = await Promise.all(all.map(({ title, request }, index) => sides[index].run(title, request)));
  if (number !== runs) return;
  byId("stop").hidden = true;
  const ends = answers.filter((answer) => answer?.kind === "end");
  if (ends.length < answers.length) {
    say("");
    return;
  }
  const [question, ...more] = sides[0].begin.question.split(/\n\n+/);
  byId("question").textContent = question;
  byId("more").hidden = more.length === 0;
  byId("more-text").textContent = more.join("\n\n");
  const events = ends.reduce((sum, { events: some }) => sum + some, 0);
  say(`${sides[0].begin.end} s simulated in ${Math.max(...sides.map(({ seconds }) => seconds)).toFixed(2)} s, ${events.toLocaleString("en")} events`);
  if (view) byId("at").value = view[0] / sides[0].begin.end;
  byId("at-shown").textContent = shownTime(at());
  // For tests: when the first picture was there, since the page was opened.
  firstPicture ??= performance.now();
};

// Shows that a scene cannot be run.
const stayEmpty = (all, message) => {
  byId("toml").value = all[0].request.file.text;
  byId("stop").hidden = true;
  showMode();
  all.forEach(({ title, request }, index) => sides[index].refuse(title, request, message));
  say("");
  fail(message);
};

// Runs soon: a slider that is moved asks many times.
let soon = 0;
const runSoon = () => {
  clearTimeout(soon);
  soon = setTimeout(() => {
    run();
    writeAddress();
  }, 60);
};

byId("stop").addEventListener("click", () => {
  runs += 1;
  opener.stop();
  sides.forEach(({ engine }) => engine.stop());
  byId("stop").hidden = true;
  say("stopped");
});

// The film of the packets.

let film = 0;
const FILM_SECONDS = 2; // of simulated time at most, from where it starts
const shownTime = (time) => `${time.toFixed(3)} s`;
const slowness = () => 10 ** Number(byId("slow").value);
const at = () => Number(byId("at").value) * (sides[0]?.begin?.end ?? 1);
const stopFilm = () => {
  byId("networks").classList.remove("moving");
  cancelAnimationFrame(film);
  film = 0;
  byId("play").textContent = "Show packets";
};

const loadPackets = async (time) => {
  say("recording packets");
  const loaded = await Promise.all(sides.map((side) => side.watch(time, time + FILM_SECONDS)));
  say(loaded.every(Boolean) ? "" : "no packets");
  return loaded.every(Boolean);
};

const drawPackets = (time) => {
  byId("networks").classList.add("moving");
  for (const { picture } of sides) {
    picture.linger = 0.3 / slowness();
    picture.draw(time);
  }
  byId("at").value = time / sides[0].begin.end;
  byId("at-shown").textContent = shownTime(time);
};

// The packets at one time, standing still.
const showPackets = async (time) => {
  stopFilm();
  if (await loadPackets(time)) drawPackets(time);
};

byId("play").addEventListener("click", async () => {
  if (film) return stopFilm();
  const start = at();
  byId("play").textContent = "Stop";
  film = -1;
  if (!(await loadPackets(start)) || film !== -1) return stopFilm();
  let before = performance.now();
  let time = start;
  const frame = (now) => {
    time += (now - before) / 1000 / slowness();
    before = now;
    if (time > Math.min(start + FILM_SECONDS, sides[0].begin.end)) return stopFilm();
    drawPackets(time);
    film = requestAnimationFrame(frame);
  };
  film = requestAnimationFrame(frame);
});
byId("at").addEventListener("input", () => { byId("at-shown").textContent = shownTime(at()); });
byId("at").addEventListener("change", () => showPackets(at()));
const showSlow = () => { byId("slow-shown").textContent = `${Math.round(slowness()).toLocaleString("en")} times`; };
byId("slow").addEventListener("input", showSlow);
showSlow();

// The controls.

const option = (value, text) => {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text ?? value;
  return element;
};

const showScene = () => {
  for (const one of CONTROLS) {
    const element = byId(`scene-${one.key}`);
    element.value = one.options ? state.scene[one.key] : toSlider(one, state.scene[one.key]);
    const output = byId(`shown-${one.key}`);
    if (!output) continue;
    output.textContent = shownValue(one, state.scene[one.key]);
    element.setAttribute("aria-valuetext", output.textContent);
  }
  sides.forEach(({ handles }) => handles.show(state.scene));
};

// A slider or a handle was moved.
const changeScene = (key, value) => {
  state.scene[key] = value;
  showScene();
  touched();
};

// Sliders describe a network of their own: while another one is shown, they are not.
const showMode = () => {
  const text = shownText();
  byId("sliders").hidden = text !== null;
  byId("laws").hidden = text !== null && !takesLaw(text);
  byId("to-sliders").hidden = text === null;
  byId("beside-label").hidden = byId("variant-label").hidden || (takesLaw(text ?? "") && state.laws[1] !== null);
};
byId("to-sliders").addEventListener("click", () => touched());

// The sliders are the scene again.
const touched = () => {
  Object.assign(state, { text: null, file: null, variants: [[]], tour: null });
  view = null;
  byId("files").value = "";
  byId("tours").value = "";
  byId("tour").hidden = true;
  byId("variant-label").hidden = true;
  runSoon();
};

const makeControls = () => {
  for (const one of CONTROLS) {
    const label = document.createElement("label");
    label.append(one.label, " ");
    const element = document.createElement(one.options ? "select" : "input");
    element.id = `scene-${one.key}`;
    // Otherwise the label would name its first part that can have a name, which is the output.
    label.htmlFor = element.id;
    if (one.options) {
      element.append(...one.options.map((value) => option(value)));
    } else {
      label.className = "slider";
      const output = document.createElement("output");
      output.id = `shown-${one.key}`;
      label.append(output);
      element.type = "range";
      element.min = toSlider(one, one.least);
      element.max = toSlider(one, one.most);
      element.step = one.scale === "log" ? 0.01 : one.step;
    }
    label.append(element);
    byId("sliders").append(label);
    element.addEventListener("input", () => changeScene(one.key, one.options ? checked(one, element.value) : fromSlider(one, Number(element.value))));
    // A step over the logarithm may be less than the next value that is shown, and then the key would do nothing.
    if (one.scale === "log") {
      element.addEventListener("keydown", (event) => {
        const value = event.ctrlKey || event.altKey || event.metaKey ? null : moved(one, state.scene[one.key], event.key);
        if (value === null) return;
        event.preventDefault();
        changeScene(one.key, value);
      });
    }
  }
};

// The settings of a law: a field for each, empty for its default.
const showSettings = (place, law) => {
  const row = about.laws.find(({ name }) => name === law?.name);
  place.replaceChildren(...(row?.settings ?? []).map((setting) => {
    const label = document.createElement("label");
    label.append(setting.name);
    label.title = `${setting.help}: ${setting.allowed}`;
    const element = document.createElement(setting.options.length > 0 ? "select" : "input");
    if (setting.options.length > 0) element.append(option("", `${setting.value} (default)`), ...setting.options.map((value) => option(value)));
    else Object.assign(element, { type: "text", placeholder: setting.value });
    element.value = law.settings[setting.name] ?? "";
    element.addEventListener("change", () => {
      const number = Number(element.value);
      if (element.value === "") delete law.settings[setting.name];
      else law.settings[setting.name] = ["true", "false"].includes(element.value) ? element.value === "true" : Number.isFinite(number) ? number : element.value;
      changedLaw();
    });
    label.append(element);
    return label;
  }));
};

// A file that takes a law is run with it; other files have their own.
const changedLaw = () => {
  const text = shownText();
  if (text === null || !takesLaw(text)) return touched();
  run();
  writeAddress();
};

// The laws in the lists: those of the registry, and those of one's own behind them.
const listLaws = () => {
  const options = () => about.laws.map(({ name, summary, isMissing }) => Object.assign(option(name, isMissing ? `${name} (not here)` : name), { title: summary }));
  byId("law-a").replaceChildren(...options());
  byId("law-b").replaceChildren(option("", "nothing"), ...options());
  control("rival").options = ["none", ...about.laws.map(({ name }) => name)];
  byId("scene-rival")?.replaceChildren(option("none"), ...options());
};

// Puts a law of one's own among the others, in the place of one of the same name.
const addLaw = (row) => {
  about.laws = [...about.laws.filter(({ name }) => name !== row.name), row];
  listLaws();
};

// Settings that a law has; those of a law that is not here are not known yet.
const knownSettings = (row, settings) => {
  const isPlain = (value) => ["string", "number", "boolean"].includes(typeof value);
  const isKnown = (key) => (row.isMissing ? /^[a-z][a-z0-9_]{0,63}$/.test(key) : row.settings.some(({ name }) => name === key));
  return Object.fromEntries(Object.entries(settings ?? {}).filter(([key, value]) => isKnown(key) && isPlain(value)));
};

// Files that were dropped or chosen. The last good one becomes the law of the scene, unless what is shown names it already.
const takeFiles = async (given) => {
  for (const file of given.slice(0, OWN_MAX)) {
    let row;
    say(`looking at ${file.name}`);
    try {
      row = await readOwn(file);
    } catch (error) {
      say("");
      fail(error.message);
      continue;
    }
    addLaw(row);
    const isNamed = lawsIn(shownText() ?? "").map(baseOf).includes(row.name);
    const isChosen = state.laws.some((law) => law?.name === row.name) || (shownText() === null && state.scene.rival === row.name);
    if (!isNamed && !isChosen) state.laws[0] = { name: row.name, settings: {} };
    state.laws.forEach((law) => { if (law?.name === row.name) law.settings = knownSettings(row, law.settings); });
    showScene();
    showLaws();
    // A text that names it is run again; its variants may not have been known.
    if (isNamed) await openFile(state.file, state.variants.some((labels) => labels.length > 0) ? state.variants : undefined, state.text);
    else changedLaw();
    say(`${row.name} is here, ${row.summary}`);
  }
};

const showLaws = () => {
  byId("law-a").value = state.laws[0].name;
  byId("law-b").value = state.laws[1]?.name ?? "";
  byId("more-b").hidden = state.laws[1] === null;
  showSettings(byId("settings-a"), state.laws[0]);
  showSettings(byId("settings-b"), state.laws[1]);
};

["law-a", "law-b"].forEach((id, index) => byId(id).addEventListener("change", ({ target }) => {
  state.laws[index] = target.value === "" ? null : { name: target.value, settings: {} };
  showLaws();
  changedLaw();
}));

// Files of the repository.

const opener = new Engine();

const indexOf = (known, variant) => known.findIndex((labels) => labels.join("\n") === variant.join("\n"));

// Lists the variants of the file that is shown.
const listVariants = (known) => {
  const options = () => known.map((labels, index) => option(String(index), labels.join(", ")));
  byId("variants").replaceChildren(...options());
  byId("variants-beside").replaceChildren(option("", "nothing"), ...options());
  byId("variant-label").hidden = known.length < 2;
  byId("variants").value = String(Math.max(0, indexOf(known, state.variants[0])));
  byId("variants-beside").value = state.variants.length > 1 ? String(indexOf(known, state.variants[1])) : "";
  const choose = () => {
    state.variants = [byId("variants"), byId("variants-beside")].filter(({ value }) => value !== "").map(({ value }) => known[Number(value)]);
    leaveTour();
    run();
    writeAddress();
  };
  byId("variants").onchange = choose;
  byId("variants-beside").onchange = choose;
};

// Opens a file, or a text, which may be made of a file and extend what that extends.
const openFile = async (file, variants, text = null) => {
  Object.assign(state, { file, text });
  byId("files").value = file ?? "";
  // Our own scenes are comparisons.
  const isComparison = file?.startsWith("scenes/") && text === null;
  let known = [[]];
  if (!variants && !isComparison) {
    state.variants = known;
    listVariants(known);
    await run();
    return;
  }
  byId("stop").hidden = false;
  const isOpen = await opener.ask({ ask: "open", file: fileOf(state.laws[0]) }, (answer) => {
    if (answer.kind === "opened") known = answer.variants;
  });
  // What is wrong with it is told when it runs.
  if (!isOpen || state.file !== file || state.text !== text) return;
  state.variants = variants?.filter((variant) => variant.length === 0 || indexOf(known, variant) >= 0) ?? known.slice(0, SIDES_MAX);
  if (state.variants.length === 0) state.variants = [known[0]];
  listVariants(known);
  await run();
};

byId("files").addEventListener("change", async ({ target }) => {
  leaveTour();
  view = null;
  if (target.value === "") touched();
  else await openFile(target.value);
  writeAddress();
});

byId("run-toml").addEventListener("click", async () => {
  leaveTour();
  view = null;
  const { variants } = state;
  await openFile(state.file, variants, byId("toml").value);
  writeAddress();
});

// Tours.

const leaveTour = () => {
  state.tour = null;
  byId("tours").value = "";
  byId("tour").hidden = true;
};

const showStep = async (tour, number) => {
  const { key, steps } = TOURS[tour];
  const one = steps[number];
  state.tour = [tour, number];
  view = one.view ?? null;
  byId("tours").value = String(tour);
  byId("tour").hidden = false;
  byId("tour-place").textContent = `${key}, step ${number + 1} of ${steps.length}`;
  byId("tour-title").textContent = one.title;
  byId("tour-text").textContent = one.text;
  byId("tour-ask").textContent = one.ask;
  byId("tour-cite").textContent = one.cite;
  byId("tour-back").disabled = number === 0;
  byId("tour-next").disabled = number === steps.length - 1;
  await openFile(one.file, one.variants);
  writeAddress();
};

byId("tours").addEventListener("change", ({ target }) => {
  if (target.value === "") touched();
  else showStep(Number(target.value), 0);
});
byId("tour-back").addEventListener("click", () => showStep(state.tour[0], state.tour[1] - 1));
byId("tour-next").addEventListener("click", () => showStep(state.tour[0], state.tour[1] + 1));
byId("tour-end").addEventListener("click", () => touched());

// The address.

const writeAddress = async () => {
  const parameters = new URLSearchParams();
  if (state.tour) parameters.set("tour", state.tour.join("."));
  else if (shownText() !== null) {
    if (state.file !== null) parameters.set("file", state.file);
    state.variants.filter((variant) => variant.length > 0).forEach((variant) => parameters.append("variant", JSON.stringify(variant)));
    if (state.text !== null) parameters.set("toml", await packedText(state.text));
  } else for (const { key, value } of CONTROLS) if (state.scene[key] !== value) parameters.set(key, String(state.scene[key]));
  ["a", "b"].forEach((key, index) => {
    const law = state.laws[index];
    if (law && (index === 1 || law.name !== "anabranch" || Object.keys(law.settings).length > 0)) parameters.set(key, JSON.stringify([law.name, law.settings]));
  });
  history.replaceState(null, "", `#${parameters}`);
};

// A law of an address, if it is one of ours, with settings that it has.
const readLaw = (text) => {
  const [name, settings] = JSON.parse(text);
  expectLaw(name);
  const row = about.laws.find((one) => one.name === name);
  if (!row) throw new Error(`there is no law ${String(name)}`);
  return { name, settings: knownSettings(row, settings) };
};

// An address may name a law of one's own, which has to be dropped again.
const expectLaw = (name) => {
  if (typeof name === "string" && isOwnName(name) && !about.laws.some((one) => one.name === name) && about.laws.length < LAWS_MAX) {
    addLaw({ name, summary: "a law of yours that is not here", settings: [], isMissing: true });
  }
};
const LAWS_MAX = 100;

const readAddress = async () => {
  const parameters = new URLSearchParams(location.hash.slice(1));
  leaveTour();
  view = null;
  Object.assign(state, { text: null, file: null, variants: [[]] });
  byId("files").value = "";
  byId("variant-label").hidden = true;
  expectLaw(parameters.get("rival"));
  for (const one of CONTROLS) state.scene[one.key] = checked(one, parameters.get(one.key) ?? one.value);
  state.laws = [{ name: "anabranch", settings: {} }, null];
  if (parameters.has("a")) state.laws[0] = readLaw(parameters.get("a"));
  if (parameters.has("b")) state.laws[1] = readLaw(parameters.get("b"));
  showScene();
  showLaws();
  if (parameters.has("tour")) {
    const [tour, number] = parameters.get("tour").split(".").map(Number);
    if (TOURS[tour]?.steps[number]) return showStep(tour, number);
  }
  const file = parameters.get("file");
  if (file !== null && !files.has(file)) throw new Error(`there is no file ${file}`);
  const text = parameters.has("toml") ? await unpackedText(parameters.get("toml")) : null;
  if (file === null && text === null) return run();
  const variants = parameters.getAll("variant").slice(0, SIDES_MAX).map((labels) => JSON.parse(labels).map(String));
  return openFile(file, variants.length > 0 ? variants : undefined, text);
};

// Exports.

const exporting = (id, make) => byId(id).addEventListener("click", async () => {
  if (sides.length > 0) await make();
});
// The scenario of a side as a file that `anabranch sim run` takes: that of the sliders as it is, another one without what it extends and without the other variants.
const exportToml = (side) => {
  const text = shownText() === null ? side.request.file.text : side.begin?.toml;
  if (text) {
    save("scenario.toml", new Blob([text], { type: "application/toml" }));
    const laws = lawsIn(text);
    if (laws.length > 0) say(`scenario.toml names ${laws.join(" and ")}: put the file beside it`);
  } else fail("There is no scenario to export: the run did not begin, or it is too large to be written out.");
};
exporting("export-toml", () => exportToml(sides[0]));
exporting("export-toml-beside", () => exportToml(sides[1]));
exporting("export-csv", () => save("curves.csv", new Blob([csvOf(sides)], { type: "text/csv" })));
exporting("export-png", async () => save("curves.png", await pngOf(sides)));
exporting("export-svg", () => save("curves.svg", new Blob([svgOf(sides)], { type: "image/svg+xml" })));
exporting("export-link", async () => {
  await writeAddress();
  const isDone = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
  const laws = [...new Set(sides.flatMap(({ request }) => request.file.laws))];
  const more = laws.length > 0 ? `; ${laws.join(" and ")} is not in it, and has to be dropped onto the page again` : "";
  say((isDone ? "the link is copied" : "the link is the page's address") + more);
});

// A browser compiles a function well when it has run for a while, for all workers. So the agents of ns-2, which no slider has, run unseen when the first picture is
// there: the first file that is opened has them ready. After some ten runs no run is shorter than the one before. What somebody asks for goes first.
const WARM = "experiments/mfast-2019/table2.toml";
const WARM_RUNS = 12;
const WARM_MS_MAX = 1500;
let warming = null;
const warmUp = async () => {
  if (!files.has(WARM)) return;
  const request = { ask: "run", file: fileOf(state.laws[0], WARM, files.get(WARM)), variant: [], opens: true };
  warming = new Engine();
  const begun = performance.now();
  for (let count = 0; count < WARM_RUNS && performance.now() - begun < WARM_MS_MAX; count += 1) if (!(await warming.ask(request, () => {}))) break;
  warming.end();
};

// The beginning.

const begin = async () => {
  byId("scene").open = !matchMedia("(max-width: 820px)").matches;
  const first = new Engine();
  await first.ask({ ask: "about" }, (answer) => { about = answer; });
  first.end();
  listLaws();
  makeControls();
  listenForFiles(takeFiles);
  files = new Map(Object.entries(await unpacked("scenarios").json()));
  const groups = new Map();
  for (const name of files.keys()) {
    const folder = name.split("/").slice(0, -1).join("/");
    if (folder === "experiments/common") continue;
    if (!groups.has(folder)) groups.set(folder, Object.assign(document.createElement("optgroup"), { label: folder.replace("experiments/", "") }));
    groups.get(folder).append(option(name, name.split("/").pop().replace(".toml", "")));
  }
  byId("files").append(...groups.values());
  byId("tours").append(...TOURS.map(({ key, title }, index) => option(String(index), `${key}: ${title}`)));
  setUpTheme(() => sides.forEach(({ charts }) => charts.redraw()));
  const read = () => readAddress().catch(async (error) => {
    await run();
    fail(`This address is not of the playground, so the sliders are shown: ${error.message.replace(/\.$/, "")}. Copy the whole link again, or choose a scenario.`);
  });
  addEventListener("hashchange", read);
  await read();
  const warm = new Promise((resolve) => { setTimeout(() => warmUp().then(resolve), 0); });
  // For tests and for those who look at the page from its console.
  const ask = async (request) => {
    const engine = new Engine();
    let last = null;
    await engine.ask(request, (answer) => { last = answer; });
    engine.end();
    return last;
  };
  const open = (file) => ask({ ask: "open", file: fileOf(state.laws[0], file, files.get(file)) });
  globalThis.playground = { open, state, sides, run, ask, firstPicture, files, tours: TOURS, warm };
};
begin().catch((error) => fail(String(error)));
