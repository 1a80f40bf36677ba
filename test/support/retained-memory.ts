/** Measures the memory that the real service retains: through the inspector that Node opens at SIGUSR1, so that nothing is added to the service. */
import { WebSocket } from 'ws';
import { z } from 'zod';
import { eventually } from './eventually.ts';

/** What the service is started with, so that its inspector takes a free port, and not the one that all programs have. */
export const INSPECTED = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' } as const;

export interface Inspected {
  /** Bytes of objects, and of buffers beside the heap, that remain in use after garbage has been collected. */
  retainedBytes(): Promise<number>;
  close(): void;
}

const Reply = z.object({ id: z.number(), result: z.object({ result: z.object({ value: z.string() }).optional() }) });
const USAGE = `JSON.stringify({
  spaces: process.getBuiltinModule('node:v8').getHeapSpaceStatistics(),
  external: process.memoryUsage().external,
})`;
const Usage = z.object({ spaces: z.array(z.object({ space_name: z.string(), space_used_size: z.number() })), external: z.number() });
/** V8 keeps compiled code here, of which there is more the more often functions are called. */
const CODE = /^(code|trusted)_/;
/** Callbacks of what was collected free more, such as the memory of buffers. */
const COLLECTIONS = 3;

/** `output`: everything that the service has written to its standard error, where Node says on which port it listens. */
export async function inspect({ pid, output }: { readonly pid: number; readonly output: () => string }): Promise<Inspected> {
  process.kill(pid, 'SIGUSR1');
  const address = (): string | undefined => /Debugger listening on (ws:\S+)/.exec(output())?.[1];
  await eventually('Node listens for the inspector', () => address() !== undefined);
  const socket = new WebSocket(address() ?? '');
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  let id = 0;
  const call = async (method: string, params: object = {}): Promise<string | undefined> => {
    id += 1;
    const own = id;
    const replied = new Promise<string | undefined>((resolve) => {
      const listen = (message: Buffer): void => {
        const reply = Reply.safeParse(JSON.parse(message.toString())).data;
        if (reply?.id !== own) return;
        socket.off('message', listen);
        resolve(reply.result.result?.value);
      };
      socket.on('message', listen);
    });
    socket.send(JSON.stringify({ id, method, params }));
    return await replied;
  };
  return {
    async retainedBytes() {
      for (let count = 0; count < COLLECTIONS; count += 1) await call('HeapProfiler.collectGarbage');
      const { spaces, external } = Usage.parse(JSON.parse((await call('Runtime.evaluate', { expression: USAGE })) ?? ''));
      return spaces.reduce((sum, { space_name: name, space_used_size: bytes }) => (CODE.test(name) ? sum : sum + bytes), external);
    },
    close: () => socket.terminate(),
  };
}
