/** The server's end of a connection in memory: a turn of the event loop takes the place of the network, so that a million requests take minutes. */
import { Duplex } from 'node:stream';

export class MemorySocket extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  /** What the server has sent, one character per byte. */
  sent = '';

  override _read(): void {
    // What arrives is pushed by the test.
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent += bytes.toString('latin1');
    done();
  }

  /** Like that of a TCP socket. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  setTimeout(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }
}
