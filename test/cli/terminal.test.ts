import { describe, expect, test } from '@jest/globals';
import { Writable } from 'node:stream';
import { ageText, sizeText, tableLines } from '../../src/cli/output/output.ts';
import { createTerminal, withoutControls } from '../../src/cli/output/terminal.ts';

function terminalOn(isTTY: boolean, env: Record<string, string> = {}) {
  const texts: string[] = [];
  const stream = () => {
    const writable = new Writable({
      write(chunk: Buffer, _encoding, done) {
        texts.push(chunk.toString());
        done();
      },
    });
    return Object.assign(writable, { isTTY, columns: 40 });
  };
  // The parts of a terminal's streams that are used.
  const terminal = createTerminal({ stdout: stream(), stderr: stream(), env });
  return { terminal, texts };
}

describe('createTerminal()', () => {
  test('colours a terminal, but not a pipe, a dumb terminal, or with NO_COLOR', () => {
    expect(terminalOn(true).terminal.paint('red', 'x')).toBe('\u001B[31mx\u001B[0m');
    expect(terminalOn(false).terminal.paint('red', 'x')).toBe('x');
    expect(terminalOn(true, { NO_COLOR: '1' }).terminal.paint('red', 'x')).toBe('x');
    expect(terminalOn(true, { TERM: 'dumb' }).terminal.paint('red', 'x')).toBe('x');
    expect(terminalOn(false, { FORCE_COLOR: '1' }).terminal.paint('red', 'x')).toBe('\u001B[31mx\u001B[0m');
  });

  test('redraws progress with a bar on a terminal, and prints one line per step into a pipe', () => {
    const progress = (share: number) => ({ text: `img: ${share}`, step: 'pulling', share });
    const tty = terminalOn(true);
    tty.terminal.progress(progress(0.25));
    tty.terminal.progress(progress(0.5));
    tty.terminal.endProgress();
    expect(tty.texts).toEqual(['\r\u001B[K[#####...............] img: 0.25', '\r\u001B[K[##########..........] img: 0.5', '\r\u001B[K']);
    const pipe = terminalOn(false);
    pipe.terminal.progress(progress(0.25));
    pipe.terminal.progress(progress(0.5));
    pipe.terminal.progress({ text: 'img: ready', step: 'ready' });
    expect(pipe.texts).toEqual(['img: 0.25\n', 'img: ready\n']);
  });
});

describe('texts', () => {
  test('withoutControls() removes what could control a terminal, and keeps line ends, tabs and letters', () => {
    expect(withoutControls('a\u001B[2Jb\u001B]0;title\u0007c\r\nd\te\u009B1mé')).toBe('abc\nd\teé');
  });

  test('tableLines() aligns by visible characters and cuts the last column to the width', () => {
    expect(tableLines(['A', 'LONGER', 'C'], [['\u001B[31mred\u001B[0m', 'x', 'a long sentence at the end']], 30)).toEqual([
      'A    LONGER  C',
      '\u001B[31mred\u001B[0m  x       a long sentence …',
    ]);
  });

  test('sizes and ages are short', () => {
    expect([0, 1023, 1024, 6.5e9, undefined].map(sizeText)).toEqual(['0 B', '1023 B', '1.0 KiB', '6.1 GiB', '-']);
    const now = Date.parse('2026-01-02T00:00:00Z');
    const ages = ['2026-01-01T23:59:18Z', '2026-01-01T23:00:00Z', '2025-12-21T00:00:00Z', null].map((since) => ageText(since, now));
    expect(ages).toEqual(['42s', '60m', '12d', '-']);
  });
});
