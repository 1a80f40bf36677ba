import { IncomingMessage } from 'node:http';
import type { ClientRequest } from '../../gateway/client-exchange.ts';

/** A request that Node's HTTP server reads. Its parser copies each piece of a body into memory of its own; memory that is larger than the piece holds something else, too, and stays. */
export class NodeRequest extends IncomingMessage implements ClientRequest {
  free({ buffer, byteLength }: Buffer): void {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
  }
}
