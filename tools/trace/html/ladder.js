// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The page: display of a trace, and interaction.  Only the visible part is
// drawn; the browser scrolls.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const AROUND = 400; // pixels drawn above and below the visible part
const PRINTED = 2000; // maximum number of rows on paper
const PAGE = 1030, PAGE_WIDTH = 900; // of a sheet of paper, pixels

const at = (id) => document.getElementById(id);
const state = {
	m: null, rows: [], arrows: [], layout: null, current: null,
	scale: "order", step: STEP, perNs: 0, drawn: [0, -1], waiting: false,
	view: { shown: new Set(SHOWN_FIRST), filter: {} },
};

// ------------------------------------------------------- nodes

function node(name, attributes = {}, ...children) {
	const made = document.createElement(name);

	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children.filter((c) => c !== null));
	return made;
}

function tree_node(tree) {
	if (typeof tree === "string")
		return document.createTextNode(tree);
	const made = document.createElementNS(SVG, tree.name);
	for (const [key, value] of Object.entries(tree.attributes))
		made.setAttribute(key, value);
	made.append(...tree.children.map(tree_node));
	return made;
}

function svg_size(svg, x, y, width, height) {
	svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
	svg.setAttribute("width", width);
	svg.setAttribute("height", height);
}

// ------------------------------------------------------- drawing

function page_rows() {
	const kept = state.current;

	state.rows = model_rows(state.m, state.view);
	state.arrows = model_arrows(state.rows);
	state.current = kept && state.rows.find((r) => r.e === kept.e) || null;
	page_layout();
	page_sum();
}

function layout_options(width) {
	return { width, scale: state.scale, step: state.step, perNs: state.perNs,
		times: true, pids: true, narrow: width < 640 };
}

function page_layout() {
	const scroll = at("scroll");

	if (!state.perNs)
		state.perNs = usual_scale();
	state.layout = layout_make(state.rows, state.arrows,
		layout_options(scroll.clientWidth));
	const { width, height } = state.layout;
	at("space").style.width = `${width}px`;
	at("space").style.height = `${height}px`;
	at("head").replaceChildren(...draw_head(state.layout).map(tree_node));
	svg_size(at("head"), 0, 0, width, HEAD);
	at("nothing").hidden = state.rows.length > 0;
	at("head").toggleAttribute("hidden", !state.rows.length);
	at("nothing").textContent = state.m.events.length ?
		"No event matches the filter." : "The trace is empty.";
	state.drawn = [0, -1];
	page_draw();
}

// Scale at which the upper quartile of the times between events is one row.
function usual_scale() {
	const gaps = [];

	for (let i = 1; i < state.rows.length; i++)
		gaps.push(state.rows[i].e.t - state.rows[i - 1].e.t);
	gaps.sort((a, b) => a - b);
	return STEP / Math.max(1, gaps[gaps.length * 3 >> 2] || 1);
}

function page_draw() {
	const scroll = at("scroll"), l = state.layout;
	const y0 = scroll.scrollTop, y1 = y0 + scroll.clientHeight;

	state.waiting = false;
	if (y0 >= state.drawn[0] && y1 <= state.drawn[1])
		return;
	const from = Math.max(0, y0 - AROUND);
	const to = Math.min(l.height, y1 + AROUND);
	state.drawn = [y0 ? from : 0, to >= l.height ? Infinity : to];
	const view = at("view");
	view.style.top = `${from}px`;
	svg_size(view, 0, from, l.width, Math.max(0, to - from));
	view.replaceChildren(...draw_part(l, from, to).map(tree_node));
	for (const g of view.querySelectorAll(".event"))
		option_make(g, state.rows[g.dataset.row]);
	page_marks();
}

function option_make(g, row) {
	g.setAttribute("role", "option");
	g.setAttribute("id", `event-${row.n}`);
	g.setAttribute("aria-label", row_said(row));
	g.setAttribute("aria-posinset", row.n + 1);
	g.setAttribute("aria-setsize", state.rows.length);
}

function row_said(row) {
	const e = row.e;

	return `${row_words(row) || `${e.called} ${e.v.op || ""}`}, ` +
		`${e.column.process.program} ${column_words(e.column)}` +
		(e.error ? ", error" : "");
}

function is_same(row, of) {
	return !!row.e.wr && !!of.e.wr && (row.e.wr === of.e.wr ||
		row.e.wr === of.e.wr.partner);
}

function page_marks() {
	const now = state.current;

	for (const g of at("view").querySelectorAll("[data-row]")) {
		const row = state.rows[g.dataset.row];
		const is = g.classList.contains("event") && row === now;
		g.classList.toggle("current", is);
		g.classList.toggle("same", !!now && is_same(row, now));
		if (g.classList.contains("event"))
			g.setAttribute("aria-selected", is);
	}
	if (now && at(`event-${now.n}`))
		at("scroll").setAttribute("aria-activedescendant",
			`event-${now.n}`);
	else
		at("scroll").removeAttribute("aria-activedescendant");
}

function page_wants_drawing() {
	if (!state.waiting)
		requestAnimationFrame(page_draw);
	state.waiting = true;
}

function count_words(n, one) {
	return `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
}

function page_sum() {
	const shown = state.rows.reduce((n, r) => n + 1 + r.folded.length, 0);
	const errors = state.rows.filter((r) => r.e.error).length;
	const lost = state.m.lost.length;

	at("sum").textContent = [
		shown === state.m.events.length ? count_words(shown, "event") :
			`${shown.toLocaleString("en")} of ` +
			count_words(state.m.events.length, "event"),
		count_words(state.arrows.length, "arrow"),
		count_words(state.m.qps.length, "QP"),
		errors ? count_words(errors, "error") : "",
		lost ? `${count_words(lost, "thread")} lost records` : "",
	].filter(Boolean).join(" · ");
}

// ------------------------------------------------------- one event

function fields_of(row) {
	const e = row.e, list = node("dl");
	const add = (name, value) => list.append(node("dt", {}, name),
		node("dd", {}, value));

	add("time", ns_words(e.t));
	for (const [name, value] of e.values)
		add(name, value);
	if (row.folded.length)
		add("and", `${row.folded.length} more receives`);
	return list;
}

function steps_of(row) {
	const list = node("ol"), wr = row.e.wr;
	const events = [...wr.events, ...(wr.partner ? wr.partner.events : [])]
		.sort((a, b) => a.i - b.i);

	for (const e of events) {
		const to = state.rows.find((r) => r.e === e ||
			r.folded.includes(e));
		const button = node("button", { type: "button" },
			node("span", {}, `${e.called}${e.wr === wr ? "" :
				` (${column_words(e.column)})`}`),
			node("span", {}, `+${ns_words(e.t - events[0].t)}`));
		button.disabled = !to;
		if (e === row.e)
			button.setAttribute("aria-current", "true");
		button.addEventListener("click", () => event_select(to, true));
		list.append(node("li", {}, button));
	}
	return list;
}

// All details of an event; if `whole` is set, with the steps of its WR.
function event_told(row, whole) {
	const e = row.e;
	const who = `${e.thread.program}[${e.thread.pid}` +
		`${e.thread.tid === e.thread.pid ? "" : `/${e.thread.tid}`}]` +
		`${e.qp ? ` QP 0x${e.qp.qpn.toString(16)} ${e.qp.type}` : ""}`;
	const told = node("div", { class: "told" },
		node("h2", {}, `${e.called} ${e.v.op || ""}`),
		node("p", { class: "who" }, who));

	for (const text of event_why(e))
		told.append(node("p", { class: "said" }, text));
	if (e.text && e.kind !== "WHY")
		told.append(node("p", {}, e.text));
	told.append(fields_of(row));
	if (whole && e.wr)
		told.append(node("h3", {}, "This work request"), steps_of(row));
	return told;
}

function event_select(row, with_details) {
	if (!row)
		return;
	state.current = row;
	if (with_details || !at("details").hidden) {
		const was = at("details").hidden;
		at("told").replaceChildren(event_told(row, true));
		at("details").hidden = false;
		if (was)
			page_layout();
	}
	event_show(row);
	page_marks();
}

function event_show(row) {
	const scroll = at("scroll"), x = state.layout.x.get(row.e.column);
	const seen = scroll.clientHeight - HEAD;

	if (row.y < scroll.scrollTop + 20 ||
	    row.y > scroll.scrollTop + seen - 40)
		scroll.scrollTop = row.y - seen / 2;
	if (x < scroll.scrollLeft + 40 ||
	    x > scroll.scrollLeft + scroll.clientWidth - 40)
		scroll.scrollLeft = x - scroll.clientWidth / 2;
	page_draw();
}

function details_close() {
	if (at("details").hidden)
		return;
	at("details").hidden = true;
	page_layout();
	at("scroll").focus();
}

// ------------------------------------------------------- navigation

function go(by) {
	const now = state.current ? state.current.n : by > 0 ? -1 :
		state.rows.length;
	const to = Math.max(0, Math.min(state.rows.length - 1, now + by));

	event_select(state.rows[to]);
}

function go_in_wr(by) {
	const now = state.current;

	if (!now)
		return;
	for (let i = now.n + by; i >= 0 && i < state.rows.length; i += by)
		if (is_same(state.rows[i], now)) {
			event_select(state.rows[i]);
			return;
		}
}

function go_to_error(by) {
	let i = (state.current ? state.current.n : by > 0 ? -1 :
		state.rows.length) + by;

	for (; i >= 0 && i < state.rows.length; i += by)
		if (state.rows[i].e.error) {
			event_select(state.rows[i]);
			return;
		}
}

// Zoom; the row at y keeps its position.
function zoom(by, y = at("scroll").clientHeight / 2) {
	const scroll = at("scroll");
	const where = scroll.scrollTop + y - HEAD;
	let row = 0;

	while (row < state.rows.length - 1 && state.rows[row + 1].y < where)
		row++;
	if (state.scale === "order")
		state.step = by ? Math.max(2, Math.min(80, state.step * by)) : STEP;
	else
		state.perNs = by ? Math.max(1e-9, Math.min(20, state.perNs * by)) :
			usual_scale();
	const was = state.rows.length ? state.rows[row].y : 0;
	page_layout();
	if (state.rows.length)
		scroll.scrollTop += state.rows[row].y - was;
	page_draw();
}

function scale(which) {
	const kept = state.current || row_at_top();

	state.scale = which;
	at("by-order").setAttribute("aria-pressed", which === "order");
	at("by-time").setAttribute("aria-pressed", which === "time");
	page_layout();
	if (kept) {
		at("scroll").scrollTop = kept.y - 60;
		page_draw();
	}
}

function row_at_top() {
	return state.rows.find((r) => r.y >= at("scroll").scrollTop) || null;
}

function theme() {
	const root = document.documentElement;
	const dark = root.dataset.theme ? root.dataset.theme === "dark" :
		matchMedia("(prefers-color-scheme: dark)").matches;

	root.dataset.theme = dark ? "light" : "dark";
	theme_name();
}

function theme_name() {
	const said = document.documentElement.dataset.theme;
	const dark = said ? said === "dark" :
		matchMedia("(prefers-color-scheme: dark)").matches;

	at("theme").textContent = dark ? "Light" : "Dark";
}

function save() {
	const text = picture(state.rows, state.arrows,
		document.querySelector("style").textContent);
	const url = URL.createObjectURL(new Blob([text],
		{ type: "image/svg+xml" }));
	const link = node("a", { href: url, download: "trace.svg" });

	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
	page_layout(); // picture() placed the rows
}

// ------------------------------------------------------- printing

function print_make() {
	const rows = model_rows(state.m, state.view).slice(0, PRINTED);
	const l = layout_make(rows, model_arrows(rows),
		{ ...layout_options(PAGE_WIDTH), scale: "order", step: STEP,
			narrow: false });
	const sheets = [node("h1", {}, "urxe trace"),
		node("p", {}, at("sum").textContent + (rows.length <
			state.rows.length ? ` · the first ${PRINTED} rows` : ""))];

	for (let y = 0; rows.length && y < l.height; y += PAGE) {
		const end = Math.min(l.height, y + PAGE);
		const svg = tree_node(tag("svg", {}, draw_head(l),
			tag("svg", { y: String(HEAD), width: String(l.width),
				height: String(end - y),
				viewBox: `0 ${y} ${l.width} ${end - y}` },
			draw_part(l, y, end))));
		svg_size(svg, 0, 0, l.width, end - y + HEAD);
		sheets.push(svg);
	}
	at("print").replaceChildren(...sheets);
}

// ------------------------------------------------------- input

const KEYS = {
	ArrowDown: () => go(1), ArrowUp: () => go(-1),
	PageDown: () => go(20), PageUp: () => go(-20),
	Home: () => go(-Infinity), End: () => go(Infinity),
	ArrowRight: () => go_in_wr(1), ArrowLeft: () => go_in_wr(-1),
	Enter: () => event_select(state.current, true),
	" ": () => event_select(state.current, true),
};
const KEYS_ANYWHERE = {
	n: () => go_to_error(1), p: () => go_to_error(-1),
	"+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8),
	0: () => zoom(0), d: theme, s: save, Escape: details_close,
	t: () => scale(state.scale === "order" ? "time" : "order"),
	"?": () => at("help").showModal(),
	"/": () => {
		at("more").open = true;
		at("text").focus();
	},
};

function key_pressed(event) {
	const in_field = event.target.closest("input, select, textarea");
	const here = event.target === at("scroll");

	if (event.ctrlKey || event.metaKey || event.altKey || at("help").open)
		return;
	if (in_field && event.key === "Escape")
		at("scroll").focus();
	const known = !in_field && ((here && KEYS[event.key]) ||
		KEYS_ANYWHERE[event.key]);
	if (!known)
		return;
	event.preventDefault();
	at("tip").hidden = true;
	known();
}

function row_of(target) {
	const g = target.closest && target.closest("[data-row]");

	return g && at("view").contains(g) ? state.rows[g.dataset.row] : null;
}

function tip_show(event) {
	const tip = at("tip"), row = row_of(event.target);

	tip.hidden = !row || event.pointerType !== "mouse" || event.buttons > 0;
	if (tip.hidden)
		return;
	tip.replaceChildren(event_told(row, false));
	const { width, height } = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(4, Math.min(event.clientX + 14,
		innerWidth - width - 8))}px`;
	tip.style.top = `${Math.max(4, event.clientY + 18 + height > innerHeight ?
		event.clientY - height - 10 : event.clientY + 18)}px`;
}

// Scroll by dragging with the mouse.  The browser does so for touch input.
function pull_begin(event) {
	const scroll = at("scroll");
	const from = [event.clientX, event.clientY, scroll.scrollLeft,
		scroll.scrollTop];
	let pulled = false;

	if (event.pointerType !== "mouse" || event.button)
		return;
	const move = (e) => {
		const [dx, dy] = [e.clientX - from[0], e.clientY - from[1]];
		pulled = pulled || Math.abs(dx) + Math.abs(dy) > 4;
		if (!pulled)
			return;
		scroll.classList.add("pulled");
		scroll.scrollLeft = from[2] - dx;
		scroll.scrollTop = from[3] - dy;
	};
	const end = () => {
		removeEventListener("pointermove", move);
		scroll.classList.remove("pulled");
		if (pulled)
			addEventListener("click", (e) => e.stopPropagation(),
				{ capture: true, once: true });
	};
	addEventListener("pointermove", move);
	addEventListener("pointerup", end, { once: true });
}

let fingers = 0; // distance of two touches, pixels

function fingers_moved(event) {
	if (event.touches.length !== 2) {
		fingers = 0;
		return;
	}
	event.preventDefault();
	const [a, b] = event.touches;
	const far = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
	if (fingers && Math.abs(far / fingers - 1) > 0.03) {
		zoom(far / fingers, (a.clientY + b.clientY) / 2 -
			at("scroll").getBoundingClientRect().top);
		fingers = far;
	}
	fingers = fingers || far;
}

function wheel_turned(event) {
	if (!event.ctrlKey)
		return;
	event.preventDefault();
	zoom(Math.exp(-event.deltaY / 300), event.clientY -
		at("scroll").getBoundingClientRect().top);
}

function filter_read() {
	const m = state.m;

	state.view.filter = { text: at("text").value, wr_id: at("wr_id").value,
		op: at("op").value, errors: at("errors").checked,
		qp: m.qps[at("qp").value] || null,
		process: [...m.processes.values()][at("process").value] || null };
	state.view.shown = new Set([...at("shown").querySelectorAll("input")]
		.filter((i) => i.checked).map((i) => i.value));
	page_rows();
}

// ------------------------------------------------------- start

function choices(id, all, pairs) {
	at(id).replaceChildren(node("option", { value: "" }, all),
		...pairs.map(([value, words]) => node("option", { value }, words)));
}

function filter_make() {
	const m = state.m;
	const ops = new Set(m.events.filter((e) => e.kind === "POSTED")
		.map((e) => e.v.op));

	choices("qp", "all", m.qps.map((q, i) =>
		[i, `0x${q.qpn.toString(16)} ${q.type} ${q.process.program}`]));
	choices("process", "all", [...m.processes.values()].map((p, i) =>
		[i, `${p.program} [${p.pid}]`]));
	choices("op", "all", [...ops].sort().map((op) => [op, op]));
	for (const [group, words] of Object.entries(GROUPS)) {
		const box = node("input", { type: "checkbox", value: group });
		box.defaultChecked = SHOWN_FIRST.includes(group);
		at("shown").append(node("label", {}, box, words));
	}
}

function legend_make() {
	const seen = LEGEND.map(([kind]) => ({ e: { kind } }));
	const half = LEGEND.length / 2;
	const part = (rows, y) => draw_legend({ rows }, y);
	const arrows = [["request", "request"], ["answer", "response"],
		["data", "response with data"], ["nak", "refused (NAK)"],
		["retry", "retransmission"], ["lost", "no response"],
		["cm", "connection manager"]];

	at("legend").append(tree_node(tag("svg", { viewBox: "0 0 480 148" },
		part(seen.slice(0, half), 18), part(seen.slice(half), 42),
		arrows.map(([kind, words], i) => tag("g", { class: `arrow ${kind}`,
			transform: `translate(${24 + i % 2 * 230} ${68 +
				(i >> 1) * 22})` },
		tag("path", { class: "line", d: "M0 0H52" }),
		kind === "lost" ?
			tag("path", { class: "cross", d: "M47 -5L57 5M47 5L57 -5" }) :
			tag("path", { class: "head", d: "M60 0L50 -4L50 4Z" }),
		tag("text", { class: "label", x: "72", y: "4" }, words))))));
}

function listen() {
	const scroll = at("scroll");

	scroll.addEventListener("scroll", page_wants_drawing, { passive: true });
	scroll.addEventListener("wheel", wheel_turned, { passive: false });
	scroll.addEventListener("touchmove", fingers_moved, { passive: false });
	scroll.addEventListener("touchend", fingers_moved, { passive: false });
	scroll.addEventListener("pointerdown", pull_begin);
	scroll.addEventListener("pointermove", tip_show);
	scroll.addEventListener("pointerleave", () => { at("tip").hidden = true; });
	scroll.addEventListener("click", (event) => {
		at("tip").hidden = true;
		event_select(row_of(event.target), true);
	});
	addEventListener("keydown", key_pressed);
	addEventListener("beforeprint", print_make);
	addEventListener("afterprint", () => at("print").replaceChildren());
	/* not in the callback: layout changes would notify it again */
	new ResizeObserver(() => requestAnimationFrame(() => page_layout()))
		.observe(scroll);
	matchMedia("(prefers-color-scheme: dark)")
		.addEventListener("change", theme_name);
	at("filter").addEventListener("input", filter_read);
	at("filter").addEventListener("submit", (e) => e.preventDefault());
	at("filter").addEventListener("reset", () => setTimeout(filter_read));
	at("by-order").addEventListener("click", () => scale("order"));
	at("by-time").addEventListener("click", () => scale("time"));
	at("zoom-in").addEventListener("click", () => zoom(1.25));
	at("zoom-out").addEventListener("click", () => zoom(0.8));
	at("theme").addEventListener("click", theme);
	at("save").addEventListener("click", save);
	at("close").addEventListener("click", details_close);
	at("ask").addEventListener("click", () => at("help").showModal());
}

function main() {
	state.m = model_make(JSON.parse(at("data").textContent));
	at("more").open = innerWidth > 700;
	filter_make();
	legend_make();
	theme_name();
	page_rows();
	listen();
}

if (typeof document !== "undefined")
	main();
