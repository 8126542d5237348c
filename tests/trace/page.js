// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The page of urxe trace --html, as its reader has it.
// Usage: page.js URXE TRACED [PICTURES]; with PICTURES it writes the
// documentation's screenshots there, in place of testing.
"use strict";
const { execFileSync, spawnSync } = require("child_process");
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { chromium } = require("playwright-core");

const [urxe, traced, pictures] = process.argv.slice(2);
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "page."));
const program = process.env.CHROMIUM || "/usr/bin/chromium";
let failed = 0;

function expect(what, is_so, said = "") {
	if (is_so)
		return;
	failed++;
	console.log(`FAILED: ${what}\n${JSON.stringify(said)}`);
}

function free_port() {
	return new Promise((done) => {
		const server = net.createServer().listen(0, () => {
			const { port } = server.address();
			server.close(() => done(port));
		});
	});
}

function on_path(program) {
	return process.env.PATH.split(":").some((place) =>
		fs.existsSync(path.join(place, program)));
}

// A page of what urxe run -- traced WORDS does.
function page_of(name, ...words) {
	const trace = path.join(dir, name);

	execFileSync(urxe, ["run", "--trace", trace, "--", traced, ...words],
		{ stdio: "ignore" });
	return html_of(trace);
}

function html_of(trace) {
	execFileSync(urxe, ["trace", "--html", `${trace}.html`, trace]);
	return `${trace}.html`;
}

function text_of(html, ...options) {
	return execFileSync(urxe, ["trace", ...options,
		html.replace(/\.html$/, "")], { encoding: "utf8",
		maxBuffer: 1 << 28 }).trim().split("\n");
}

async function open(browser, html, options = {}) {
	const context = await browser.newContext({ colorScheme: "light",
		viewport: { width: 1280, height: 860 }, ...options });
	const page = await context.newPage();

	page.on("console", (m) => expect("the console is quiet", false, m.text()));
	page.on("pageerror", (e) => expect("no error", false, String(e)));
	page.on("request", (r) => expect("nothing is fetched",
		r.url().startsWith("file:") || r.url().startsWith("blob:"),
		r.url()));
	await page.goto(`file://${html}`);
	return page;
}

// What is drawn while one scrolls from the top to the end: { class: count }.
function drawn(page) {
	return page.evaluate(async () => {
		const scroll = document.getElementById("scroll"), seen = new Map();
		for (let y = 0; ; y += scroll.clientHeight / 2) {
			scroll.scrollTop = y;
			await new Promise((done) => requestAnimationFrame(() =>
				requestAnimationFrame(done)));
			for (const g of document.querySelectorAll("#view [data-row]"))
				seen.set(g.getAttribute("class")
					.replace(/ (current|same)/g, "") +
					g.dataset.row, g.classList[0] + " " +
					g.classList[1]);
			if (y > scroll.scrollHeight)
				break;
		}
		scroll.scrollTop = 0;
		const counts = {};
		for (const what of seen.values())
			counts[what] = (counts[what] || 0) + 1;
		return counts;
	});
}

async function all_again(page) {
	const sum = () => page.locator("#sum").textContent();
	const was = await sum();

	await page.locator("#filter button[type=reset]").click();
	await page.waitForFunction((before) =>
		document.getElementById("sum").textContent !== before, was);
}

// ------------------------------------------------------- tests

async function arrows(browser) {
	const html = page_of("writes", "writes", "30");
	const page = await open(browser, html), text = text_of(html);
	const lines = (what) => text.filter((l) => l.includes(` ${what} `)).length;
	const seen = await drawn(page);

	for (const [what, line] of [["arrow request", "arrived"],
		["arrow answer", "answered"], ["event POSTED", "posted"],
		["event COMPLETED", "completed"], ["event POLLED", "polled"]])
		expect(`${what}: as many as ${line}`, lines(line) === 30 &&
			seen[what] === lines(line), seen);
	const first = await page.locator(".arrow.request .words").first()
		.textContent();
	const left = text.find((l) => l.includes(" left ")).match(/psn=(\d+)/)[1];
	expect("an arrow has opcode, PSN and length",
		first === `RDMA_WRITE · PSN ${left} · 8 B`, first);
	return page;
}

async function pointing(page) {
	const arrow = page.locator(".arrow.request .reach").first();

	await arrow.hover({ force: true });
	expect("hovering tells", (await page.locator("#tip").textContent())
		.includes("psn"));
	await page.locator(".event.COMPLETED .mark").first().click();
	const told = await page.locator("#told").textContent();
	expect("a click tells all", /status.*SUCCESS/.test(told) &&
		["posted", "left", "arrived", "answered", "polled"].every((w) =>
			told.includes(w)), told);
	await page.keyboard.press("Escape");
	expect("Escape closes", await page.locator("#details").isHidden());
}

async function keys(page) {
	const now = () => page.locator("#scroll")
		.getAttribute("aria-activedescendant");

	await page.locator("#scroll").focus();
	await page.keyboard.press("Home");
	const first = await now();
	await page.keyboard.press("ArrowDown");
	expect("down", first === "event-0" && await now() === "event-1", first);
	await page.keyboard.press("End");
	expect("the last is seen", await page.locator(".event.current").count() === 1);
	await page.keyboard.press("ArrowLeft");
	await page.keyboard.press("Enter");
	expect("Enter tells", await page.locator("#details").isVisible());
	await page.keyboard.press("Escape");
	await page.keyboard.press("?");
	expect("? helps", await page.locator("#help").isVisible());
	await page.keyboard.press("Escape");
	await page.keyboard.press("/");
	await page.keyboard.type("0x7");
	expect("/ is for text", await page.locator("#text").inputValue() === "0x7");
	await all_again(page);
}

async function zooming(page) {
	const tall = () => page.evaluate(() =>
		document.getElementById("space").clientHeight);
	const was = await tall();

	await page.locator("#zoom-in").click();
	expect("larger", await tall() > was);
	await page.keyboard.press("0");
	expect("as it was", await tall() === was);
	const box = await page.locator("#scroll").boundingBox();
	await page.mouse.move(box.x + 500, box.y + 300);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, 300);
	await page.keyboard.up("Control");
	await page.waitForFunction((height) =>
		document.getElementById("space").clientHeight < height, was);
	await page.keyboard.press("0");
	await page.locator("#by-time").click();
	expect("by time", await page.locator("#view .time").count() > 2);
	await page.locator("#by-order").click();
}

async function filter(page) {
	await page.locator("#wr_id").fill("7");
	const seen = await drawn(page);
	expect("one WR", seen["arrow request"] === 1 &&
		seen["event POLLED"] === 1, seen);
	await page.locator("#errors").check();
	expect("which has no error", await page.locator("#nothing").isVisible());
	await all_again(page);
	expect("all again", (await drawn(page))["arrow request"] === 30);
}

async function errors(browser) {
	const html = page_of("wrong", "wrong"), page = await open(browser, html);

	expect("RNR and NAK", await page.locator(".arrow.nak").count() >= 2 &&
		(await page.locator(".arrow.nak .words").allTextContents())
			.includes("RNR NAK"));
	await page.locator("#scroll").focus();
	await page.keyboard.press("n");
	expect("n goes to an error",
		await page.locator(".event.error.current").count() === 1);
	await page.locator("#wr_id").fill("2");
	await page.locator("#scroll").focus();
	await page.keyboard.press("End");
	await page.keyboard.press("Enter");
	const said = await page.locator("#told .said").allTextContents();
	expect("why", said.some((text) => text.includes("rkey")), said);
	expect("the NAK says which", (await page.locator(".arrow.nak .words")
		.allTextContents()).includes("NAK: remote access error"));
}

async function saved(browser) {
	const html = path.join(dir, "wrong.html");
	const page = await open(browser, html, { acceptDownloads: true });
	const [download] = await Promise.all([page.waitForEvent("download"),
		page.locator("#save").click()]);
	const file = path.join(dir, "saved.svg"), other = `${file}.too`;

	await download.saveAs(file);
	execFileSync(path.join(__dirname, "picture"),
		[urxe, path.join(dir, "wrong"), other]);
	expect("the picture is that of tests/trace/picture",
		fs.readFileSync(file).equals(fs.readFileSync(other)));
	const svg = await open(browser, file);
	expect("it is SVG", await svg.locator(".arrow.request").count() > 2);
}

async function schemes(browser) {
	const html = path.join(dir, "wrong.html");
	const paper = (page) => page.evaluate(() =>
		getComputedStyle(document.body).backgroundColor);
	const light = await open(browser, html);
	const dark = await open(browser, html, { colorScheme: "dark" });
	const [a, b] = [await paper(light), await paper(dark)];

	expect("dark is not light", a !== b, a);
	await light.locator("#theme").click();
	expect("the button makes it dark", await paper(light) === b);
}

async function many(browser) {
	const page = await open(browser, page_of("many", "writes", "2000"));
	const nodes = () => page.evaluate(() =>
		document.getElementsByTagName("*").length);
	const sum = await page.locator("#sum").textContent();

	expect("over 10,000 events", Number(sum.match(/of ([\d,]+) events/)[1]
		.replace(",", "")) > 10000, sum);
	expect("few are drawn", await nodes() < 1500, await nodes());
	for (let i = 0; i < 12; i++)
		await page.locator("#zoom-out").click();
	expect("from afar, too", await nodes() < 6000, await nodes());
	await page.locator("#by-time").click();
	for (let i = 0; i < 20; i++)
		await page.locator("#zoom-out").click();
	expect("and by time", await nodes() < 6000, await nodes());
}

async function phone(browser) {
	const page = await open(browser, path.join(dir, "wrong.html"),
		{ viewport: { width: 390, height: 800 }, hasTouch: true,
			isMobile: true, colorScheme: "dark" });
	const wide = await page.evaluate(() =>
		document.documentElement.scrollWidth);

	expect("no wider than the phone", wide === 390, wide);
	await page.locator(".event.POSTED .mark").first().tap();
	expect("a tap tells", await page.locator("#details").isVisible());
}

async function paper(browser) {
	const page = await open(browser, path.join(dir, "writes.html"));
	const pdf = await page.pdf({ preferCSSPageSize: true });
	const sheets = (pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) || [])
		.length;

	expect("several sheets", sheets > 1 && sheets < 12, sheets);
}

async function markup(browser) {
	const name = "<img src=x onerror=document.title=1>";
	const program = path.join(dir, name);

	fs.symlinkSync(path.resolve(traced), program);
	execFileSync(urxe, ["run", "--trace", path.join(dir, "markup"), "--",
		program, "writes", "1"], { stdio: "ignore" });
	const page = await open(browser, html_of(path.join(dir, "markup")));
	await page.locator(".event.POSTED .mark").click();
	expect("a name is text", await page.locator("img").count() === 0 &&
		await page.title() === "urxe trace" &&
		(await page.locator("#told .who").textContent())
			.startsWith(name.slice(0, 20)));
}

// Messages of the connection manager, from one end to the other.
async function connections(browser) {
	const trace = path.join(dir, "connections");
	const words = `-a 127.0.0.1 -C 1 -p ${await free_port()}`;

	if (!on_path("rping"))
		return;
	execFileSync(urxe, ["run", "--trace", trace, "--", "sh", "-c",
		`rping -s ${words} & until rping -c ${words}; do sleep 0.1; done; wait`],
		{ stdio: "ignore" });
	const html = html_of(trace), page = await open(browser, html);
	const sent = text_of(html).map((l) => l.match(/ CM ([A-Z]+) /))
		.filter((m) => m).map((m) => m[1]);
	const seen = await page.evaluate(() => {
		const m = model_make(JSON.parse(
			document.getElementById("data").textContent));
		const rows = model_rows(m, { shown: new Set(SHOWN_FIRST),
			filter: {} });
		return model_arrows(rows).filter((a) => a.kind === "cm")
			.map((a) => ({ label: a.label,
				other: a.from.column.process !== a.to.column.process,
				got: a.to.row !== a.row && a.to.row.e.v.event }));
	});
	const last = seen.slice(-5);

	expect("an arrow for each message", seen.length === sent.length &&
		seen.every((a, i) => a.label === `CM ${sent[i]}`), [sent, seen]);
	expect("of a connection and its end", last.map((a) => a.label).join() ===
		"CM REQ,CM REP,CM RTU,CM DREQ,CM DREP", last);
	expect("to the other process", last.every((a) => a.other), last);
	expect("and to the event that it gets", last[0].got ===
		"CONNECT_REQUEST" && ["CONNECT_RESPONSE", "ESTABLISHED"]
		.includes(last[1].got) && last[2].got === "ESTABLISHED" &&
		last[3].got === "DISCONNECTED", last);
	expect("it is drawn", (await drawn(page))["arrow cm"] === sent.length,
		await drawn(page));
}

// A user of Chromium sees errors of a ResizeObserver, and no other listener
// does.
function quiet() {
	const html = path.join(dir, "writes.html");
	const done = spawnSync(program, ["--headless", "--no-sandbox",
		"--disable-gpu", "--enable-logging=stderr", "--dump-dom",
		`--user-data-dir=${path.join(dir, "profile")}`,
		"--virtual-time-budget=3000", `file://${html}`],
		{ encoding: "utf8", maxBuffer: 1 << 28, timeout: 120000 });
	const said = done.stderr.split("\n").filter((l) => l.includes("CONSOLE"));

	expect("Chromium opens it", done.stdout.includes("RDMA_WRITE · PSN"),
		done.stderr);
	expect("its console is quiet", !said.length, said);
}

async function empty(browser) {
	const trace = path.join(dir, "empty");

	execFileSync(urxe, ["run", "--trace", trace, "--", "true"]);
	if (!fs.existsSync(trace))
		return;
	const page = await open(browser, html_of(trace));
	expect("an empty trace has a note",
	       (await page.locator("#nothing").textContent())
		       .includes("empty"));
}

async function main() {
	const browser = await chromium.launch({ args: ["--no-sandbox"],
		executablePath: program });

	if (pictures) {
		const page = await open(browser, page_of("wrong", "wrong"),
			{ viewport: { width: 1180, height: 640 } });
		await page.locator("#wr_id").fill("2");
		await page.locator(".arrow.nak").first().click({ force: true });
		await page.screenshot({ path: path.join(pictures, "page.png") });
		const small = await open(browser, path.join(dir, "wrong.html"),
			{ viewport: { width: 390, height: 620 }, isMobile: true,
				colorScheme: "dark" });
		await small.screenshot({ path: path.join(pictures,
			"page-phone.png") });
	} else {
		const page = await arrows(browser);
		for (const test of [pointing, keys, zooming, filter])
			await test(page);
		for (const test of [errors, saved, schemes, many, phone, paper,
			markup, connections, quiet, empty])
			await test(browser);
	}
	await browser.close();
}

main().catch((e) => {
	failed++;
	console.log(e);
}).finally(() => {
	fs.rmSync(dir, { recursive: true });
	process.exit(failed ? 1 : 0);
});
