import { once } from "node:events";
import { connect } from "node:net";

/** The answer to one command, as it comes: enough for a ping and for `INFO`. */
export async function askRedis(url: string, command: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  // It closes the connection after the answer to the second command.
  socket.write(`${command}\r\nQUIT\r\n`);
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += chunk;
  return answer;
}
