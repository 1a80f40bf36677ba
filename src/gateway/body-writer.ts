/** Writes the body of a request to a connection piece by piece, in chunks if its length was not known when the request began. */
import type { ReadMemory } from './read-memory.ts';
import type { UpstreamConnection } from './upstream/upstream-connection.ts';

export class BodyWriter {
  readonly #connection: UpstreamConnection;
  readonly #chunked: boolean;
  readonly #memory: ReadMemory;

  constructor(connection: UpstreamConnection, chunked: boolean, memory: ReadMemory) {
    this.#connection = connection;
    this.#chunked = chunked;
    this.#memory = memory;
  }

  /** Returns false if the caller should wait until the connection has drained. */
  write(bytes: Buffer): boolean {
    const connection = this.#connection;
    if (!this.#chunked) return connection.write(bytes);
    connection.write(`${bytes.length.toString(16)}\r\n`);
    connection.write(bytes);
    return connection.write('\r\n');
  }

  /** Frees the memory of what was written and is not kept, unless some of it waits in the connection. */
  freeWritten(): void {
    if (this.#connection.hasWrittenAll) this.#memory.free();
  }

  end(): void {
    if (this.#chunked) this.#connection.write('0\r\n\r\n');
    this.#connection.endRequest();
  }
}
