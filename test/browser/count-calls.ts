/** Counts calls of functions in a page without changing the page. */
import type { Page } from 'playwright-core';

interface Called {
  readonly text: string;
  readonly count: number;
}

/**
 * Counts from now on, across navigations. Returns a function that resolves with a count for each of `parts`: the calls
 * of the shortest function whose text contains it. It rejects if there is none.
 */
export async function countCalls(page: Page, parts: readonly string[]): Promise<() => Promise<readonly number[]>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Debugger.enable');
  await session.send('Profiler.enable');
  await session.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return async () => {
    const { result } = await session.send('Profiler.takePreciseCoverage');
    const called: Called[] = [];
    for (const { scriptId, functions } of result) {
      const { scriptSource } = await session.send('Debugger.getScriptSource', { scriptId });
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) called.push({ text: scriptSource.slice(startOffset, endOffset), count });
    }
    return parts.map((part) => countOf(called, part));
  };
}

function countOf(called: readonly Called[], part: string): number {
  const [shortest] = called.filter(({ text }) => text.includes(part)).toSorted((one, other) => one.text.length - other.text.length);
  if (shortest === undefined) throw new Error(`No function of the page contains ${part}`);
  return shortest.count;
}
