import { SESSIONS } from "../settings.ts";
import type { World } from "../world.ts";
import { Batcher } from "./batcher.ts";
import type { Client } from "./client.ts";
import { Editor } from "./editor.ts";
import { GuestClient } from "./guest-client.ts";
import { Meddler } from "./meddler.ts";
import { Planner } from "./planner.ts";
import { Rusher } from "./rusher.ts";
import { Submitter } from "./submitter.ts";
import { Talker } from "./talker.ts";

/** All clients, from now until they are stopped. */
export function startClients(world: World): Client[] {
  return [
    new Submitter(world, "one"),
    new Submitter(world, "another"),
    new Batcher(world, "batcher"),
    new Meddler(world, "meddler"),
    new Planner(world, "planner"),
    ...(world.worst.isFar ? [new Rusher(world, "rusher")] : []),
    ...(world.chance.fork("clients").oneIn(2) ? [new Editor(world, "editor")] : []),
    ...world.guests.map((guest) => new GuestClient(world, guest)),
    ...Object.keys(SESSIONS).map((key) => new Talker(world, key)),
  ];
}
