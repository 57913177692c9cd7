// Runs before `npm start`, `npm test` and `npm run check`, so that each of them works as the only command on a
// fresh clone. It runs on whatever Node the machine has, before ours is installed: plain, old JavaScript only.
"use strict";

const { spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const NODE_MINIMUM = [22, 19];
const ROOT = path.join(__dirname, "..");

main();

function main() {
  // Installing runs scripts of its own; none of them is to begin the installation again.
  if (process.env.ROTA_INSTALLING) return;
  if (!isInstalled()) install();
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

function install() {
  process.stderr.write("Installing dependencies …\n");
  // `npm ci` removes node_modules and with it our Node: the one that runs npm must be the machine's own.
  const node = process.env.npm_node_execpath || process.execPath;
  const npm = process.env.npm_execpath;
  // With NODE_ENV=production npm would leave out the devDependencies, and Node is one of them.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  // stdout belongs to the command that was asked for; what npm says goes to stderr.
  const options = {
    cwd: ROOT,
    stdio: ["ignore", 2, 2],
    env: Object.assign({}, process.env, { ROTA_INSTALLING: "1" }),
  };
  const result = npm
    ? spawnSync(node, [npm].concat(args), options)
    : spawnSync("npm", args, Object.assign({ shell: process.platform === "win32" }, options));
  if (result.error) fail(`npm could not be started: ${result.error.message}`);
  if (result.status !== 0) fail("npm ci failed; run it by itself to see why.");
}

function fail(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

function isNodeTooOld() {
  const version = process.versions.node.split(".").map(Number);
  return version[0] < NODE_MINIMUM[0] || (version[0] === NODE_MINIMUM[0] && version[1] < NODE_MINIMUM[1]);
}
