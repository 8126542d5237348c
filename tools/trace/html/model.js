// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What is drawn, derived from the data of the trace (trace_html.c): events,
// their columns, and arrows.  This file knows neither pixels nor the page.
"use strict";

// Groups of events that can be hidden.  Requests and responses are always
// shown.
const GROUPS = {
	moments: "posted, polled",
	data: "data",
	states: "states",
	cm: "rdma_cm",
	packets: "packets",
	events: "events",
	why: "reasons",
	objects: "objects",
	calls: "calls",
};
const SHOWN_FIRST = ["moments", "states", "cm", "packets", "events", "why"];
const GROUP_OF = {
	CALL: "calls", CM_CALL: "calls", WHY: "why",
	POSTED: "moments", POLLED: "moments", RECV_POSTED: "moments",
	QP_MADE: "objects", MR_MADE: "objects", CQ_MADE: "objects",
	QP_MODIFIED: "states", CM_EVENT: "cm", CM_SENT: "cm", DATA: "data",
	PACKET: "packets", CQ_EVENT: "events", ASYNC_EVENT: "events",
};
const LOCAL = ["LOCAL_INV", "BIND_MW"]; // send no packets
const QP_EARLIER = -2; // in a record: the QP was created before the trace
const ANSWERS = ["RC", "XRC_SEND"]; // QP types with acknowledgements

// ------------------------------------------------------- events

function model_make(data) {
	const m = { events: [], columns: [], wrs: [], processes: new Map() };

	for (const t of data.threads)
		m.processes.set(t.process, {
			pid : t.pid,
			program : t.program,
			columns : [],
			lane : null,
			earlier : false
		});
	for (const [, thread, qp] of data.records)
		if (qp === QP_EARLIER)
			m.processes.get(data.threads[thread].process).earlier =
				true;
	m.lost = data.threads.filter((t) => t.lost);
	m.qps = data.qps.map((q, i) => column_of_qp(m, q, i));
	for (const p of m.processes.values())
		process_place(m, p);
	m.wrs = data.wrs.map(([qp, recv, partner]) =>
		({ qp: m.qps[qp], recv: !!recv, partner, events: [] }));
	for (const w of m.wrs)
		w.partner = w.partner < 0 ? null : m.wrs[w.partner];
	data.records.forEach((r, i) => m.events.push(event_make(m, data, r, i)));
	model_explain(m);
	model_address(m);
	return m;
}

function column_of_qp(m, q, i) {
	const p = m.processes.get(q.process) ||
		{ pid: q.process, program: "?", columns: [], lane: null };
	const c = { qpn: q.qpn, type: q.type, process: p, nth: i, peer: null,
		changes: [] }; // events that changed the state of the QP

	m.processes.set(q.process, p);
	p.columns.push(c);
	return c;
}

// Events without a QP are in a separate column of the process, unless it has
// exactly one QP and no event of a QP that was created before the trace.
function process_place(m, p) {
	if (p.columns.length === 1 && !p.earlier) {
		p.lane = p.columns[0];
	} else {
		p.lane = { qpn: 0, type: "", process: p, peer: null, changes: [] };
		m.columns.push(p.lane);
	}
	m.columns.push(...p.columns);
}

function event_make(m, data, record, i) {
	const [t, thread, qp, what, wr, peer, error, values] = record;
	const [kind, called] = data.events[what] || ["?", "?"];
	const e = { i, t, kind, called, error: !!error, text: "", values: [],
		v: {}, why: [], thread: data.threads[thread],
		qp: m.qps[qp] || null, peer: m.qps[peer] || null,
		wr: m.wrs[wr] || null };

	if (typeof values === "string")
		e.text = values.replace(/^(QP 0x[0-9a-f]+ )?(call|why:) /, "");
	for (let j = 0; typeof values !== "string" && j < values.length; j += 2) {
		e.values.push([values[j], values[j + 1]]);
		e.v[values[j]] = values[j + 1];
	}
	e.process = m.processes.get(e.thread.process);
	e.column = e.qp || e.process.lane;
	if (kind === "QP_MODIFIED" && e.qp && e.peer)
		e.qp.peer = e.peer;
	if (e.qp && /^QP_(MODIFIED|BROKEN)$/.test(kind) && e.v.state)
		e.qp.changes.push(e);
	if (kind === "ARRIVED") {
		e.wr = e.wr || wr_of_copy(m, e);
		e.column = e.peer || e.column;
	}
	if (kind === "FETCHED" && e.qp && e.qp.peer)
		e.column = e.qp.peer;
	if (e.wr)
		e.wr.events.push(e);
	return e;
}

// A multicast datagram arrives at several QPs: find its WR by the PSN.
function wr_of_copy(m, e) {
	for (let i = m.events.length - 1; i >= 0 && i > m.events.length - 100; i--) {
		const left = m.events[i];
		if (left.kind === "LEFT" && left.qp === e.qp &&
		    left.v.psn === e.v.psn)
			return left.wr;
	}
	return null;
}

// A reason (WHY) belongs to the WR or call that its thread recorded before.
function model_explain(m) {
	const last = new Map();

	for (const e of m.events) {
		const key = e.thread;
		if (e.kind !== "WHY") {
			last.set(key, e);
			continue;
		}
		const about = last.get(key);
		if (!about)
			continue;
		e.about = about;
		(about.wr || about).said = [...(about.wr || about).said || [],
			e.text];
		if (about.wr && e.text.startsWith(`QP 0x${about.wr.qp.qpn
			.toString(16)}`))
			e.column = about.wr.qp;
		else if (about.qp)
			e.column = about.column;
	}
}

// Find the receiver of each CM message by the communication IDs, which each
// end of a connection chooses.
function model_address(m) {
	const sent = m.events.filter((e) => e.kind === "CM_SENT");
	const by = new Map();

	for (const e of sent) {
		by.set(e.v.local_comm_id, e.column);
		if (e.v.remote_comm_id)
			e.to = by.get(e.v.remote_comm_id) || null;
	}
	for (const e of sent)
		if (!e.v.remote_comm_id) {
			const answer = sent.find((a) => a.i > e.i &&
				a.v.remote_comm_id === e.v.local_comm_id);
			e.to = answer ? answer.column : null;
		}
	// both ends of the connection are from before the trace
	for (const e of sent)
		if (!e.qp && e.to === e.column)
			e.to = null;
}

function event_why(e) {
	return (e.wr && e.wr.said) || e.said || (e.kind === "WHY" ? [e.text] : []);
}

// ------------------------------------------------------- filter

// If one step of a WR matches the filter, all its steps are shown.
function unit_passes(unit, wr, f) {
	const some = (test) => unit.some(test);

	if (f.errors && !some((e) => e.error))
		return false;
	if (f.qp && !some((e) => e.qp === f.qp || e.peer === f.qp ||
	    e.column === f.qp) && !(wr && wr.partner && wr.partner.qp === f.qp))
		return false;
	if (f.process && !some((e) => e.process === f.process ||
	    e.column.process === f.process))
		return false;
	if (f.wr_id && !some((e) => "wr_id" in e.v &&
	    same_number(e.v.wr_id, f.wr_id)))
		return false;
	if (f.op && !some((e) => e.v.op === f.op))
		return false;
	return !f.text || some((e) => event_words(e).toLowerCase()
		.includes(f.text.toLowerCase()));
}

function same_number(a, b) {
	try {
		return BigInt(a) === BigInt(b.trim());
	} catch {
		return false;
	}
}

function event_words(e) {
	const who = `${e.thread.program} ${e.thread.pid} `;
	const qp = e.qp ? `QP 0x${e.qp.qpn.toString(16)} ` : "";

	return who + qp + e.called + " " + e.text + " " +
		e.values.map(([n, v]) => `${n}=${v}`).join(" ") + " " +
		event_why(e).join(" ");
}

// Return the visible rows, in order.  view: { shown: Set of groups, filter }.
function model_rows(m, view) {
	const passes = new Map(), rows = [];

	for (const e of m.events) {
		const group = GROUP_OF[e.kind];
		if (group && !view.shown.has(group) && !(e.error && group === "calls"))
			continue;
		const unit = e.wr || (e.about && e.about.wr) || e;
		if (!passes.has(unit))
			passes.set(unit, unit_passes(unit.events || [unit],
				unit.events ? unit : null, view.filter));
		if (!passes.get(unit))
			continue;
		const before = rows[rows.length - 1];
		if (before && row_folds(before, e))
			before.folded.push(e);
		else
			rows.push({ e, n: rows.length, folded: [],
				merged: !!before && row_merges(before.e, e),
				before: 0, after: 0 });
	}
	return rows;
}

// Consecutive posted receives are one row.
function row_folds(row, e) {
	return e.kind === "RECV_POSTED" && row.e.kind === e.kind &&
		row.e.column === e.column && !e.error;
}

const MERGES = { POSTED: "LEFT", ARRIVED: "FETCHED", ANSWERED: "COMPLETED" };

// A WR leaves in the row of its post, and completes in the row of its
// response.
function row_merges(a, b) {
	return !!b.wr && a.wr === b.wr && a.column === b.column &&
		MERGES[a.kind] === b.kind;
}

// ------------------------------------------------------- arrows

// An end of an arrow is { column, row, by }: `by` row distances below the row.
function model_arrows(rows) {
	const arrows = [], at = new Map();

	for (const row of rows) {
		const wr = row.e.wr;
		if (row.e.kind === "WHY")
			life_found(at, row);
		if (row.e.kind === "CM_SENT" && row.e.to)
			arrows.push(cm_arrow(rows, row));
		if (!wr || wr.recv || GROUP_OF[row.e.kind])
			continue;
		if (!at.has(wr))
			at.set(wr, { wr, out: null, there: null, waits: false,
				arrows });
		const step = STEPS[row.e.kind];
		if (step)
			step(at.get(wr), row);
	}
	for (const life of at.values())
		life_ends(life);
	return arrows;
}

const CM_EVENTS = { REQ: ["CONNECT_REQUEST"],
	REP: ["CONNECT_RESPONSE", "ESTABLISHED"], RTU: ["ESTABLISHED"],
	REJ: ["REJECTED"], DREQ: ["DISCONNECTED"], DREP: ["DISCONNECTED"] };

// An arrow to the event that the message causes, if the trace has it.
function cm_arrow(rows, row) {
	const e = row.e;
	const got = rows.find((r) => r.n > row.n && !r.cm &&
		r.e.kind === "CM_EVENT" && r.e.column.process === e.to.process &&
		(CM_EVENTS[e.v.message] || []).includes(r.e.v.event));

	if (got)
		got.cm = true;
	else
		row.after = Math.max(row.after, 0.8);
	return { from: end_of(e.column, row), to: got ?
		end_of(got.e.column, got) : end_of(e.to, row, 0.8), kind: "cm",
		label: `CM ${e.v.message}`, row };
}

// The response leaves after the reason that the responder recorded.
function life_found(at, row) {
	const life = at.get(row.e.about && row.e.about.wr);

	if (life && life.there && life.there.column === row.e.column) {
		row.after = 0.6;
		life.there = end_of(row.e.column, row, 0.4);
	}
}

function end_of(column, row, by = 0) {
	return { column, row, by };
}

function arrow_add(life, from, to, kind, label, row) {
	life.arrows.push({ from, to, kind, label, row });
}

function bytes(n) {
	return n === undefined ? "" : `${n} B`;
}

function request_words(e) {
	return [e.v.op, `PSN ${e.v.psn}`, bytes(e.v.length)].filter(Boolean)
		.join(" · ");
}

const STEPS = {
	LEFT(life, row) {
		life.out = row;
		life.left = row.e;
		life.there = null;
	},
	ARRIVED(life, row) {
		const from = life.out || row;
		life.there = end_of(row.e.column, row);
		life.arrived = true;
		arrow_add(life, end_of(life.wr.qp, from), life.there, "request",
			life.left ? request_words(life.left) : row.e.v.op, from);
	},
	// The responder has no receive, or does not respond.
	WAITS(life, row) {
		life.waits = true;
		life.rnr = /RNR/.test(row.e.v.for);
		if (life.rnr && life.there)
			arrow_add(life, life.there, end_of(life.wr.qp, row), "nak",
				"RNR NAK", row);
		else
			life_lost(life, life.out || row);
		life.there = null;
	},
	AGAIN(life, row) {
		if (!life.rnr) {
			life_lost(life, row);
			return;
		}
		if (life.there)
			life_not_ready(life);
		const peer = life_peer(life);
		row.after = 1;
		life.there = end_of(peer, row, 1);
		life.waits = false;
		arrow_add(life, end_of(life.wr.qp, row), life.there, "retry",
			`${row.e.v.op} again`, row);
	},
	ANSWERED(life, row) {
		const own = life.wr.qp;
		const status = row.e.v.status;
		if (life.waits && life.rnr && status === "SUCCESS") {
			// the last retransmission is not recorded
			row.before = 2;
			life.there = end_of(life_peer(life), row, -1);
			arrow_add(life, end_of(own, row, -2), life.there, "retry",
				`${row.e.v.op} again`, row);
		}
		life.answered = true;
		if (!life.there || !ANSWERS.includes(own.type || "RC") ||
		    LOCAL.includes(row.e.v.op))
			return;
		const [kind, label] = answer_words(life, row.e);
		if (kind)
			arrow_add(life, life.there, end_of(own, row), kind, label,
				row);
	},
};

function life_peer(life) {
	const arrived = life.wr.events.find((e) => e.kind === "ARRIVED");

	return (arrived && arrived.peer) || life.wr.qp.peer || life.wr.qp;
}

// The retransmitted request found no receive either: another RNR NAK.
function life_not_ready(life) {
	life.there.row.after = 2;
	arrow_add(life, life.there, end_of(life.wr.qp, life.there.row, 2), "nak",
		"RNR NAK", life.there.row);
}

// The request gets no response.
function life_lost(life, row) {
	life.lost = true;
	arrow_add(life, end_of(life.wr.qp, row),
		end_of((life.left && life.left.peer) || life.wr.qp.peer, row, 0.5),
		"lost", life.left ? request_words(life.left) : "", row);
}

function life_ends(life) {
	if (!life.left || life.arrived || life.lost ||
	    LOCAL.includes(life.left.v.op))
		return;
	const answer = life.wr.events.find((e) => e.kind === "ANSWERED");
	if (!answer || !/^LOC_/.test(answer.v.status))
		life_lost(life, life.out);
}

const NAKS = ["PSN sequence error", "invalid request", "remote access error",
	"remote operational error", "invalid RD request"];
const NAK_OF = { REM_INV_REQ_ERR: 1, REM_ACCESS_ERR: 2, REM_OP_ERR: 3 };

// [kind, label] of the arrow of a response; kind is null if there is none.
function answer_words(life, e) {
	const syndrome = Number(e.v.nak || 0), status = e.v.status;

	if (syndrome >> 5 === 1 || status === "RNR_RETRY_EXC_ERR")
		return ["nak", "RNR NAK"];
	if (syndrome >> 5 === 3)
		return ["nak", `NAK: ${NAKS[syndrome & 31] || "reserved"}`];
	if (status in NAK_OF)
		return ["nak", `NAK: ${NAKS[NAK_OF[status]]}`];
	if (status !== "SUCCESS")
		return [null, ""];
	if (e.v.op === "RDMA_READ")
		return ["data", `READ response · ${bytes(life.left && life.left.v.length)}`];
	if (/^ATOMIC_(CMP|FETCH)/.test(e.v.op)) {
		const old = life.wr.events.find((f) => f.kind === "FETCHED");
		return ["data", old ? `atomic response · ${old.v.old}` :
			"atomic response"];
	}
	return ["answer", "ACK"];
}

// ------------------------------------------------------- labels

function wr_words(e) {
	return e.v.wr_id === undefined ? "" : `wr ${e.v.wr_id}`;
}

// Short name of the opcode; the arrow has the full one.
function op_words(op) {
	return (op || "").replace(/ATOMIC_|RDMA_/, "");
}

// The short label next to an event.
function row_words(row) {
	const e = row.e, v = e.v;
	const join = (...words) => words.filter(Boolean).join(" · ");

	switch (e.kind) {
	case "POSTED": return join(`post ${op_words(v.op)}`, wr_words(e));
	case "RECV_POSTED":
		return row.folded.length ?
			`${row.folded.length + 1} receives posted` :
			join("post RECV", wr_words(e), v.srq && `SRQ ${v.srq}`);
	case "REFUSED": return join("refused", wr_words(e),
		(v.error || "").replace(/^\d+ \((.*)\)$/, "$1"));
	case "LEFT": return LOCAL.includes(v.op) && !row.merged ?
		join(v.op, wr_words(e)) : "";
	case "ARRIVED": case "ANSWERED": return "";
	case "WAITS": return /RNR/.test(v.for) ? "waits: RNR" :
		"waits: no response";
	case "AGAIN": return "timer expired";
	case "FETCHED": return `found ${v.old}`;
	case "COMPLETED": return join(v.status === "SUCCESS" && op_words(v.op),
		v.status, wr_words(e));
	case "POLLED": return v.status === "SUCCESS" ?
		join(`polled ${op_words(v.op)}`, wr_words(e)) :
		`polled ${v.status}`;
	case "QP_MADE": return "QP created";
	case "QP_MODIFIED": return v.state === "RTR" && v.peer ?
		`RTR · peer ${v.peer}` : v.state;
	case "QP_BROKEN": return `now in ${v.state}`; // by modify_qp, too
	case "MR_MADE": return join("MR", `rkey ${v.rkey}`, bytes(v.length));
	case "DATA": return `data ${v.data}`;
	case "CM_SENT": return e.to ? "" : `CM ${v.message || ""}`;
	case "PACKET": return `${v.in ? "in" : "out"}: ${v.packet || ""}`;
	case "CM_EVENT": return `rdma_cm ${v.event}`;
	case "CM_CALL": return join(`rdma_cm_${v.command}`, v.error);
	case "ASYNC_EVENT": return `event ${v.event}`;
	case "CALL": case "WHY": return e.text;
	default: return e.called;
	}
}
