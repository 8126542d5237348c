// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Positions and shapes of rows and arrows.  The shapes are trees of tags, from
// which nodes of the page or the text of an SVG file are made.  Strings of a
// trace are text in both, never markup.
"use strict";

const STEP = 26; // distance of rows, by order
const HEAD = 62; // height of the column names
const GAP = 260, GAP_SHOWN = 46; // longer pauses are cut to GAP_SHOWN

// ------------------------------------------------------- layout

// opt: { width, scale: "order" or "time", step, perNs, times, narrow }
function layout_make(rows, arrows, opt) {
	const l = { rows, arrows, opt, step: opt.step, gaps: [] };

	l.columns = layout_columns(rows, arrows);
	l.processes = [...new Set(l.columns.map((c) => c.process))];
	layout_x(l, opt);
	layout_sides(l);
	for (const row of rows)
		row_label(l, row);
	layout_y(l, opt);
	l.states = layout_states(l);
	l.copies = layout_copies(arrows);
	return l;
}

function layout_columns(rows, arrows) {
	const used = new Set(rows.map((r) => r.e.column));
	const order = new Set(rows.map((r) => r.e.column.process));

	for (const a of arrows) {
		used.add(a.from.column);
		if (a.to.column)
			used.add(a.to.column);
	}
	return [...used].filter(Boolean).sort((a, b) => column_rank(a, order) -
		column_rank(b, order));
}

// A datagram to a multicast group has several arrows.  Return all but one of
// them: these have no label.
function layout_copies(arrows) {
	const seen = new Set();

	return new Set(arrows.filter((a) => {
		const key = `${a.kind} ${a.from.row.n} ${a.from.by}`;
		return seen.size === seen.add(key).size;
	}));
}

// Sort key: processes by their first event; of a process first the column
// without a QP, then its QPs.
function column_rank(c, order) {
	const p = [...order.keys()].indexOf(c.process);
	const own = c.process.columns.indexOf(c);

	return (p < 0 ? order.size : p) * 1e6 + own + 1;
}

function layout_x(l, opt) {
	const n = l.columns.length;

	l.gutter = opt.times ? (opt.narrow ? 68 : 92) : 12;
	const least = opt.narrow ? 150 : n > 2 ? 270 : 220;
	l.side = opt.narrow ? Math.max(84, Math.min(218, Math.floor(
		(opt.width - l.gutter - 12 - least * (n - 1)) / 2))) : 218;
	const room = opt.width - l.gutter - (n > 1 ? 2 : 1.4) * l.side - 12;
	l.pitch = n > 1 ? Math.max(least, Math.min(400, room / (n - 1))) : 0;
	l.pitch = Math.floor(l.pitch);
	const spare = n > 1 ? room - l.pitch * (n - 1) : room - l.side;
	l.x = new Map(l.columns.map((c, i) => [c, Math.floor(l.gutter +
		(n > 1 ? l.side : 40) + i * l.pitch + Math.max(0, spare / 2))]));
	l.width = n ? Math.max(opt.width, l.x.get(l.columns[n - 1]) + l.side +
		(n > 1 ? 12 : l.side)) : opt.width;
}

// Place the labels of a column on the side with fewer arrows.
function layout_sides(l) {
	const right = new Map();

	for (const { from, to, kind } of l.arrows) {
		if (!to.column || kind === "cm")
			continue;
		const by = Math.sign(l.x.get(to.column) - l.x.get(from.column));
		right.set(from.column, (right.get(from.column) || 0) + by);
		right.set(to.column, (right.get(to.column) || 0) - by);
	}
	l.left = new Set(l.columns.filter((c, i) => l.columns.length > 1 &&
		i < l.columns.length - 1 &&
		(i === 0 || (right.get(c) || 0) > 0)));
}

function layout_y(l, opt) {
	let y = 20, time = null;

	for (const row of l.rows) {
		if (time !== null && !row.merged)
			y += opt.scale === "time" ?
				layout_gap(l, opt, row.e.t - time, y) :
				l.step * (1 + row.before);
		row.y = Math.round(y * 10) / 10;
		if (opt.scale === "order")
			y += l.step * row.after + row.tall;
		time = row.e.t;
	}
	l.height = Math.ceil(y + l.step * 1.5);
}

function layout_gap(l, opt, ns, y) {
	const by = ns * opt.perNs;

	if (by <= GAP)
		return by;
	l.gaps.push({ y: y + GAP_SHOWN / 2, ns });
	return GAP_SHOWN;
}

// The QP states of each column, from which y on: [{ y, state }].
function layout_states(l) {
	const y_of = (e) => {
		const row = l.rows.find((r) => r.e.i >= e.i);
		return row ? row.y : l.height;
	};

	return new Map(l.columns.map((c) => [c, c.changes.map((e) =>
		({ y: e.i <= l.rows[0].e.i ? 0 : y_of(e), state: e.v.state }))]));
}

function end_xy(l, end) {
	const order = l.opt.scale === "order";
	const by = order ? l.step : Math.min(l.step, 6);

	return [l.x.get(end.column), end.row.y + end.by * by +
		(order ? end.row.tall : 0)];
}

// ------------------------------------------------------- labels

// Estimated width of a character, which is the same in all browsers.
function letter_width(c) {
	if ("ilj.,·:;'|()[] tfr/".includes(c))
		return 4.6;
	return /[A-Zmw_—…]/.test(c) ? 8.1 : 7;
}

function text_width(text) {
	let width = 0;

	for (const c of text)
		width += letter_width(c);
	return width;
}

function cut(text, room) {
	let width = 0, i = 0;

	if (text_width(text) <= room)
		return text;
	const letters = [...text];
	while (i < letters.length && width + 8 < room)
		width += letter_width(letters[i++]);
	return `${letters.slice(0, Math.max(1, i - 1)).join("")}…`;
}

// The text in lines.  Texts of calls and reasons are on the side of the other
// columns and have at most four lines.
function row_label(l, row) {
	row.lines = row_lines(l, row, row_words(row));
	row.tall = 15 * (row.lines.length - 1);
}

function row_lines(l, row, text) {
	const inward = row.e.kind === "WHY" || row.e.kind === "CALL";

	row.left = l.left.has(row.e.column) !== (inward && l.columns.length > 1);
	if (!inward)
		return [cut(text, l.side - 16)];
	const room = Math.max(l.side, l.pitch - 44);
	const lines = [];
	let line = "";
	for (const word of text.split(" ")) {
		if (line && text_width(`${line} ${word}`) > room) {
			lines.push(line);
			line = "";
		}
		line += (line ? " " : "") + word;
	}
	lines.push(line);
	if (lines.length > 4)
		lines.splice(3, lines.length, `${lines[3]} …`);
	return lines.map((one) => cut(one, room));
}

function ns_words(ns) {
	if (ns < 1e3)
		return `${ns} ns`;
	if (ns < 1e6)
		return `${(ns / 1e3).toFixed(3)} µs`;
	if (ns < 1e9)
		return `${(ns / 1e6).toFixed(3)} ms`;
	return `${(ns / 1e9).toFixed(3)} s`;
}

function column_words(c) {
	return c.qpn ? `QP 0x${c.qpn.toString(16)}${c.type ? ` ${c.type}` : ""}` :
		"process";
}

// ------------------------------------------------------- shapes

function tag(name, attributes, ...children) {
	return { name, attributes, children: children.flat(2).filter(Boolean) };
}

function n(x) {
	return String(Math.round(x * 10) / 10);
}

function line_path(...points) {
	return "M" + points.map(([x, y]) => `${n(x)} ${n(y)}`).join("L");
}

const MARKS = {
	POSTED: (x, y) => tag("circle", { class: "mark open", cx: n(x), cy: n(y),
		r: "4" }),
	COMPLETED: (x, y) => tag("rect", { class: "mark full", x: n(x - 4.5),
		y: n(y - 4.5), width: "9", height: "9", rx: "1.5" }),
	POLLED: (x, y) => tag("path", { class: "mark tick",
		d: line_path([x - 4, y], [x - 1, y + 3.5], [x + 5, y - 4.5]) }),
	RECV_POSTED: (x, y) => tag("path", { class: "mark open", d: line_path(
		[x - 5, y - 4], [x - 5, y + 4], [x + 5, y + 4], [x + 5, y - 4]) }),
	WHY: (x, y) => bang(x, y),
	REFUSED: (x, y) => bang(x, y),
	WAITS: (x, y) => bang(x, y),
	QP_BROKEN: (x, y) => bang(x, y),
	QP_MODIFIED: (x, y) => diamond(x, y, "state"),
	QP_MADE: (x, y) => diamond(x, y, "state"),
	CM_EVENT: (x, y) => diamond(x, y, "cm"),
	CM_SENT: (x, y) => diamond(x, y, "cm"),
	CM_CALL: (x, y) => diamond(x, y, "cm"),
	AGAIN: (x, y) => tag("circle", { class: "mark bad-open", cx: n(x),
		cy: n(y), r: "4" }),
	ARRIVED: () => null,
	LEFT: (x, y, said) => said && dot(x, y),
	ANSWERED: () => null,
};

function bang(x, y) {
	return tag("g", { class: "mark bang" },
		tag("circle", { cx: n(x), cy: n(y), r: "6" }),
		tag("path", { d: line_path([x, y - 3.2], [x, y + 0.6]) +
			line_path([x, y + 2.8], [x, y + 3.2]) }));
}

function diamond(x, y, what) {
	return tag("path", { class: `mark ${what}`, d: `${line_path([x, y - 5],
		[x + 5, y], [x, y + 5], [x - 5, y])}Z` });
}

function dot(x, y) {
	return tag("circle", { class: "mark dot", cx: n(x), cy: n(y), r: "2.5" });
}

function draw_event(l, row, said) {
	const e = row.e, x = l.x.get(e.column), y = row.y;
	const out = row.left ? -1 : 1;
	const mark = (MARKS[e.kind] || dot)(x, y, row.lines[0]);
	const labels = said ? row.lines.filter(Boolean) : [];
	const from = row.left ? x - l.side + 8 : x - 8;
	const tall = Math.max(4, Math.min(20, l.step - 2));

	return tag("g", { class: `event ${e.kind}${e.error ? " error" : ""}`,
		"data-row": row.n },
	row.merged && !mark ? null : tag("rect", { class: "hit", x: n(from), y: n(y - tall / 2),
		width: n(l.side), height: n(tall + row.tall),
		rx: "4" }),
	mark,
	labels.map((text, i) => tag("text", { class: "label",
		x: n(x + 12 * out), y: n(y + 4 + 15 * i),
		"text-anchor": out < 0 ? "end" : "start" }, text)));
}

function arrow_head(x, y, dx, dy) {
	const long = Math.hypot(dx, dy) || 1;
	const [ux, uy] = [dx / long * 9, dy / long * 9];

	return `${line_path([x, y], [x - ux - uy * 0.45, y - uy + ux * 0.45],
		[x - ux + uy * 0.45, y - uy - ux * 0.45])}Z`;
}

// An arrow.  That of a lost request ends before the column of the peer.
function draw_arrow(l, a) {
	let [x1, y1] = end_xy(l, a.from);
	let [x2, y2] = a.to.column ? end_xy(l, a.to) : [x1 + 160, y1 + 8];
	const dir = Math.sign(x2 - x1);

	if (!dir)
		return draw_loop(l, a, x1, y1, y2);
	if (a.kind === "lost")
		[x2, y2] = [x1 + (x2 - x1) * 0.6, y1 + (y2 - y1) * 0.6];
	x1 += 5 * dir;
	x2 -= (a.kind === "lost" ? 0 : 3) * dir;
	const parts = [
		tag("path", { class: "reach", d: line_path([x1, y1], [x2, y2]) }),
		tag("path", { class: "line", d: line_path([x1, y1], [x2, y2]) }),
		a.kind === "lost" ? tag("path", { class: "cross", d:
			line_path([x2 - 5, y2 - 5], [x2 + 5, y2 + 5]) +
			line_path([x2 - 5, y2 + 5], [x2 + 5, y2 - 5]) }) :
			tag("path", { class: "head",
				d: arrow_head(x2, y2, x2 - x1, y2 - y1) }),
	];
	return tag("g", { class: `arrow ${a.kind}`, "data-row": a.row.n }, parts,
		arrow_label(l, a, x1, y1, x2, y2));
}

function arrow_label(l, a, x1, y1, x2, y2) {
	const room = Math.min(Math.abs(x2 - x1), l.pitch || 400) - 24;
	let turn = Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI;

	if (Math.abs(turn) > 90)
		turn += turn > 0 ? -180 : 180;
	if (l.step < 13 || !a.label || room < 40 || l.copies.has(a))
		return [];
	const steep = Math.abs(turn) > 30;
	// if the arrow crosses other columns: between the last two
	const far = Math.abs(x2 - x1) > 1.5 * l.pitch;
	const at = steep ? 60 / (Math.abs(x2 - x1) + 60) :
		far ? 1 - l.pitch / 2 / Math.abs(x2 - x1) : 0.5;
	const x = x1 + (x2 - x1) * at, y = y1 + (y2 - y1) * at;
	return [tag("text", { class: "words", "text-anchor": "middle",
		transform: `translate(${n(x)} ${n(y)}) rotate(${n(steep ? 0 :
			turn)})`, y: "-5" }, cut(a.label, room))];
}

// An arrow of a QP that is connected to itself.
function draw_loop(l, a, x, y1, y2) {
	const out = l.left.has(a.from.column) ? 1 : -1;
	const far = x + 60 * out, low = Math.max(y2, y1 + 8);
	const d = `M${n(x + 5 * out)} ${n(y1)}C${n(far)} ${n(y1)} ${n(far)} ` +
		`${n(low)} ${n(x + 5 * out)} ${n(low)}`;

	return tag("g", { class: `arrow ${a.kind}`, "data-row": a.row.n },
		tag("path", { class: "reach", d }), tag("path", { class: "line", d }),
		tag("path", { class: "head", d: arrow_head(x + 4 * out, low, -out,
			0) }),
		l.step < 13 ? [] : [tag("text", { class: "words",
			x: n(x + 62 * out), y: n((y1 + low) / 2 + 4),
			"text-anchor": out < 0 ? "end" : "start" }, a.label)]);
}

function draw_lane(l, c, y0, y1) {
	const x = n(l.x.get(c)), parts = [];
	let from = y0, state = "";

	const part = (to) => {
		if (to > from)
			parts.push(tag("path", { class: `lane ${state}`,
				d: `M${x} ${n(from)}V${n(to)}` }));
	};
	for (const change of l.states.get(c)) {
		if (change.y >= l.height || change.y > y1)
			break;
		if (change.y > from) {
			part(change.y);
			from = change.y;
		}
		state = change.state;
	}
	part(y1);
	return parts;
}

function draw_times(l, rows) {
	let last = -100;

	return rows.filter((row) => {
		if (row.y - last < 13)
			return false;
		last = row.y;
		return true;
	}).map((row) => tag("text", { class: "time", x: n(l.gutter - 8),
		y: n(row.y + 4), "text-anchor": "end" }, ns_words(row.e.t)));
}

function draw_gap(l, gap) {
	return [tag("path", { class: "gap", d: `M${n(l.gutter)} ${n(gap.y)}` +
		`H${n(l.width)}` }),
	tag("text", { class: "time", x: n(l.gutter + 4), y: n(gap.y - 3) },
		`${ns_words(gap.ns)} later`)];
}

// Draw what lies between y0 and y1.  Of events at the same position, only two
// are drawn (three errors), and of equal arrows one.
function draw_part(l, y0, y1) {
	const spots = new Map(), free = (most, ...spot) => {
		const key = spot.join(), there = spots.get(key) || 0;
		spots.set(key, there + 1);
		return there < most;
	};
	const below = new Map(); // y from which the next label fits
	const said = (row) => {
		if (l.opt.scale === "order")
			return l.step >= 13;
		if (!row.lines[0] || row.y < (below.get(row.e.column) || 0))
			return false;
		below.set(row.e.column, row.y + row.tall + 13);
		return true;
	};
	const close = l.opt.scale === "time" ? 5 :
		Math.max(1, Math.min(3, l.step / 2));
	const rows = l.rows.filter((r) => r.y >= y0 - 30 && r.y <= y1 + 30 &&
		free(r.e.error ? 3 : 2, r.e.column.nth, Math.round(r.y / close)));
	const arrows = l.arrows.filter((a) => {
		const [, from] = end_xy(l, a.from);
		const to = a.to.column ? end_xy(l, a.to)[1] : from;
		return Math.max(from, to) >= y0 && Math.min(from, to) <= y1 &&
			free(1, a.kind, a.from.column.nth, Math.round(from / close),
				Math.round(to / close));
	});

	return [
		...l.columns.flatMap((c) => draw_lane(l, c, Math.max(0, y0),
			Math.min(l.height, y1))),
		...l.gaps.filter((g) => g.y >= y0 && g.y <= y1)
			.flatMap((g) => draw_gap(l, g)),
		...arrows.map((a) => draw_arrow(l, a)),
		...rows.map((row) => draw_event(l, row, said(row))),
		...(l.opt.times ? draw_times(l, rows) : []),
	];
}

// Processes with the same name are numbered if no PIDs are shown.
function process_name(l, p) {
	const same = l.processes.filter((o) => o.program === p.program);

	return same.length > 1 && !l.opt.pids ?
		`${p.program} (${same.indexOf(p) + 1})` : p.program;
}

function draw_head(l) {
	const room = Math.min(l.pitch || 400, 2 * l.side) - 12;

	return l.columns.map((c) => tag("g", { class: "name" },
		tag("text", { class: "program", x: n(l.x.get(c)), y: "20",
			"text-anchor": "middle" }, cut(process_name(l, c.process), room)),
		tag("text", { class: "qp", x: n(l.x.get(c)), y: "37",
			"text-anchor": "middle" }, column_words(c)),
		l.opt.pids ? [tag("text", { class: "pid", x: n(l.x.get(c)), y: "53",
			"text-anchor": "middle" }, `PID ${c.process.pid}`)] : []));
}

const LEGEND = [["POSTED", "posted"], ["RECV_POSTED", "receive posted"],
	["COMPLETED", "completed"], ["POLLED", "polled"],
	["QP_MODIFIED", "state"], ["CM_EVENT", "rdma_cm"], ["WHY", "problem"]];

// The legend of the marks that are used.
function draw_legend(l, y) {
	const kinds = new Set(l.rows.map((r) => r.e.kind));
	let x = 24;

	return LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, words]) => {
		const at = x;
		x += text_width(words) + 38;
		return tag("g", { class: `legend ${kind}` }, MARKS[kind](at, y),
			tag("text", { class: "pid", x: n(at + 11), y: n(y + 4) },
				words));
	});
}

// ------------------------------------------------------- SVG file

function escape_text(text) {
	return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
		.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "?");
}

function tree_text(tree) {
	if (typeof tree === "string")
		return escape_text(tree);
	const { name, attributes, children } = tree;
	if (attributes.class === "hit" || attributes.class === "reach")
		return ""; // invisible, for the mouse pointer
	const own = Object.entries(attributes)
		.filter(([key]) => !key.startsWith("data-"))
		.map(([key, value]) => ` ${key}="${escape_text(value)}"`).join("");
	return children.length ? `<${name}${own}>${children.map(tree_text)
		.join("")}</${name}>` : `<${name}${own}/>`;
}

// The colours in ladder.css are light-dark(LIGHT, DARK).  Not all SVG viewers
// support this, so use a media query instead.
function picture_style(css) {
	const rules = css.split("/* drawing */")[1];
	const colours = [...css.matchAll(
		/(--[a-z-]+):\s*light-dark\(([^,]+),\s*([^)]+)\)/g)];
	const in_scheme = (i) => rules.replace(/var\((--[a-z-]+)\)/g,
		(whole, name) => colours.find((c) => c[1] === name)[i].trim());

	return `${in_scheme(2)}@media (prefers-color-scheme: dark) {${in_scheme(3)}}`
		.replace(/\s+/g, " ");
}

// All visible rows as an SVG file, without times.
function picture(rows, arrows, css, options = {}) {
	const columns = layout_columns(rows, arrows).length;
	const pitch = options.narrow ? 165 : 330;
	const width = options.width || (columns < 2 ? 640 :
		2 * 218 + 24 + pitch * (columns - 1));
	const l = layout_make(rows, arrows, { width, scale: "order", step: STEP,
		times: false, narrow: options.narrow });
	const title = options.title || "A ladder diagram, by urxe trace";
	const tall = l.height + HEAD + 18;

	return tree_text(tag("svg", { xmlns: "http://www.w3.org/2000/svg",
		viewBox: `0 0 ${l.width} ${tall}`, width: l.width, height: tall,
		role: "img", "aria-label": title },
	tag("title", {}, title), tag("style", {}, picture_style(css)),
	tag("rect", { class: "paper", width: l.width, height: tall, rx: "8" }),
	draw_head(l),
	tag("g", { class: "all", transform: `translate(0 ${HEAD - 16})` },
		draw_part(l, 0, l.height)),
	draw_legend(l, tall - 16))) + "\n";
}

// The same from the data of a trace.  The options are those of
// tests/trace/picture.
function picture_of(data, css, options) {
	const m = model_make(data), list = (s) => s ? s.split(",") : [];
	const shown = new Set((options.show ? list(options.show) : SHOWN_FIRST)
		.filter((group) => !list(options.hide).includes(group)));
	const filter = { errors: options.errors, wr_id: options["wr-id"],
		op: options.op, text: options.text,
		qp: options.qp && m.qps.find((q) => same_number(String(q.qpn),
			options.qp)),
		process: options.program && [...m.processes.values()].find((p) =>
			p.program === options.program) };
	const rows = model_rows(m, { shown, filter })
		.slice(Number(options.from || 1) - 1, Number(options.to || Infinity));

	return picture(rows, model_arrows(rows), css, { title: options.title,
		width: Number(options.width) || 0, narrow: options.narrow });
}
