// A TCP proxy in front of a server, whose connections tests cut.
import { connect, createServer } from "node:net";

export class Proxy {
  #target;
  #server;
  #port = 0;
  #sockets = new Set();
  /** How many connections it has had. */
  connections = 0;

  constructor(url) {
    const { hostname, port, protocol } = new URL(url);
    this.#target = { host: hostname, port: Number(port || (protocol === "https:" ? 443 : 80)) };
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts it, the second time at the same port. */
  async start() {
    this.#server = createServer((client) => {
      this.connections += 1;
      const upstream = connect(this.#target);
      for (const [socket, other] of [[client, upstream], [upstream, client]]) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    await new Promise((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = this.#server.address().port;
    return this;
  }

  /** Cuts all connections; new ones are still accepted. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts all connections, and refuses new ones. */
  async stop() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }
}
