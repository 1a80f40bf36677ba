/** The worker processes of a service, as Linux lists them. */
import { readdir, readFile } from 'node:fs/promises';

export async function workersOf(pid: number): Promise<readonly number[]> {
  const found = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(async (name) => await parentOf(name)));
  return found.flatMap((each) => (each?.parent === pid && each.command.includes('worker-main') ? [each.pid] : []));
}

async function parentOf(name: string) {
  try {
    const [stat, command] = await Promise.all([readFile(`/proc/${name}/stat`, 'utf8'), readFile(`/proc/${name}/cmdline`, 'utf8')]);
    return {
      pid: Number(name),
      parent: Number(
        stat
          .slice(stat.lastIndexOf(')') + 1)
          .trim()
          .split(' ')[1],
      ),
      command,
    };
  } catch {
    // It has ended.
    return undefined;
  }
}

/** What a metric says of each worker, by its number. */
export async function metricOfWorkers(url: string, name: string): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/api/metrics`)).text();
  return new Map(
    [...text.matchAll(new RegExp(`^${name}\\{worker="(\\d+)"\\} (\\S+)$`, 'gm'))].map(([, worker = '', value]) => [worker, Number(value)]),
  );
}

export async function totalOf(url: string, name: string, label: string): Promise<number> {
  const text = await (await fetch(`${url}/api/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, 'gm'))].reduce(
    (sum, [, labels = '', value]) => sum + (labels.includes(label) ? Number(value) : 0),
    0,
  );
}
