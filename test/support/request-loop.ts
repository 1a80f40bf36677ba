/** Clients that ask one request after another, and count what was answered and what failed. */
import { pause } from './service.ts';

export interface RequestLoop {
  /** One line for each request that failed. */
  readonly failures: readonly string[];
  /** The different answers. */
  readonly answers: ReadonlySet<string>;
  /** Ends after the present requests and one more of each client, so that the last answers are those of now. */
  end(): Promise<void>;
}

export function startRequestLoop(ask: () => Promise<string>, clients: number): RequestLoop {
  const failures: string[] = [];
  const answers = new Set<string>();
  let running = true;
  const one = async (): Promise<void> =>
    ask().then(
      (answer) => void answers.add(answer),
      (error: unknown) => void failures.push(String(error)),
    );
  const loops = Array.from({ length: clients }, async () => {
    while (running) {
      await one();
      await pause(5);
    }
    await one();
  });
  return {
    failures,
    answers,
    async end() {
      running = false;
      await Promise.all(loops);
    },
  };
}
