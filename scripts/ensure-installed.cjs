// Runs before `npm start`, `npm test` and `npm run check`, so that each of them works as the only command on a
// fresh clone. It runs on whatever Node the machine has, before ours is installed: plain, old JavaScript only.
"use strict";

const { spawn } = require("child_process");
const fs = require("fs");
const path = require("path");

const NODE_MINIMUM = [22, 19];
const ROOT = path.join(__dirname, "..");
/** How often the progress is shown: a log file should not fill with it. */
const TERMINAL_INTERVAL_MS = 200;
const PLAIN_INTERVAL_MS = 3000;

main();

function main() {
  // Installing runs scripts of its own; none of them is to begin the installation again.
  if (process.env.ROTA_INSTALLING) return;
  if (isInstalled()) checkNode();
  else install(checkNode);
}

function checkNode() {
  if (isNodeTooOld() && !fs.existsSync(path.join(ROOT, "node_modules", ".bin", "node"))) {
    fail(`Rota needs Node ${NODE_MINIMUM.join(".")} or newer; this is ${process.version}.`);
  }
}

/**
 * Compares the lockfile with the one npm keeps of what it installed. Their contents rather than their times: a
 * checkout or a copy changes times without changing a single package.
 */
function isInstalled() {
  const wanted = readPackages(path.join(ROOT, "package-lock.json"));
  const present = readPackages(path.join(ROOT, "node_modules", ".package-lock.json"));
  if (!wanted || !present) return false;
  return Object.keys(wanted).every((name) => {
    // The entry without a name is this project itself.
    if (name === "") return true;
    if (!present[name]) return mayBeAbsent(wanted[name]);
    return (
      present[name].version === wanted[name].version && present[name].integrity === wanted[name].integrity
    );
  });
}

/** Packages for other platforms are absent, and a server may be started with `npm ci --omit=dev`. */
function mayBeAbsent(entry) {
  const isForStart = process.env.npm_lifecycle_event === "prestart" && !isNodeTooOld();
  return Boolean(entry.optional || entry.devOptional || entry.peer || (entry.dev && isForStart));
}

function readPackages(file) {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8")).packages;
  } catch (_) {
    return undefined;
  }
}

function install(onInstalled) {
  const progress = showProgress(packagesToInstall());
  // `npm ci` removes node_modules and with it our Node: the one that runs npm must be the machine's own.
  const node = process.env.npm_node_execpath || process.execPath;
  const npm = process.env.npm_execpath;
  // With NODE_ENV=production npm would leave out the devDependencies, and Node is one of them.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"];
  // stdout belongs to the command that was asked for; npm's errors go to stderr.
  const options = {
    cwd: ROOT,
    stdio: ["ignore", "ignore", 2],
    env: Object.assign({}, process.env, { ROTA_INSTALLING: "1" }),
  };
  const installing = npm
    ? spawn(node, [npm].concat(args), options)
    : spawn("npm", args, Object.assign({ shell: process.platform === "win32" }, options));
  installing.on("error", (error) => fail(`npm could not be started: ${error.message}`));
  installing.on("exit", (status) => {
    progress.stop();
    if (status !== 0) fail("npm ci failed; run it by itself to see why.");
    progress.done();
    onInstalled();
  });
}

/** The directories of all packages for this platform. Those for one C library only are optional and are not counted. */
function packagesToInstall() {
  const wanted = readPackages(path.join(ROOT, "package-lock.json")) || {};
  return Object.keys(wanted).filter((name) => {
    const entry = wanted[name];
    return name !== "" && !entry.libc && fits(entry.os, process.platform) && fits(entry.cpu, process.arch);
  });
}

/** Whether a list like `["linux"]` or `["!win32"]` admits this platform; no list admits all. */
function fits(list, own) {
  if (!list || list.indexOf(`!${own}`) !== -1) return !list;
  return list.indexOf(own) !== -1 || list.every((name) => name[0] === "!");
}

/** Reports how many of the packages have been unpacked: in a terminal in one line, elsewhere as plain lines. */
function showProgress(packages) {
  const startedAt = Date.now();
  const terminal = process.stderr.isTTY;
  const seconds = () => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  const show = () => {
    // npm unpacks the manifest of a package together with the rest of it.
    const present = packages.filter((name) => fs.existsSync(path.join(ROOT, name, "package.json"))).length;
    const text = `${present} of ${packages.length} packages, ${seconds()}`;
    process.stderr.write(terminal ? `\r  ${text}\u001b[K` : `  ${text}\n`);
  };
  process.stderr.write(`Installing ${packages.length} packages (only this once) …\n`);
  const timer = setInterval(show, terminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS);
  return {
    stop() {
      clearInterval(timer);
      if (terminal) process.stderr.write("\r\u001b[K");
    },
    done() {
      process.stderr.write(`Installed ${packages.length} packages in ${seconds()}.\n`);
    },
  };
}

function fail(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

function isNodeTooOld() {
  const version = process.versions.node.split(".").map(Number);
  return version[0] < NODE_MINIMUM[0] || (version[0] === NODE_MINIMUM[0] && version[1] < NODE_MINIMUM[1]);
}
