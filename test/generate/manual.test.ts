import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { svcctlManual } from '../../scripts/generate/publish-svcctl.ts';
import { GLOBAL_OPTIONS } from '../../src/cli/shared-options.ts';
import { VERBS } from '../../src/cli/verb-table.ts';

const manual = svcctlManual();
/** As a reader sees it. */
const plain = manual.replaceAll('\\-', '-').replaceAll('\\(dq', '"').replaceAll('\\(aq', "'").replaceAll('\\(ti', '~');

describe('svcctl.1', () => {
  test('names every verb with its arguments, options and examples', () => {
    for (const entry of VERBS) {
      for (const verb of 'load' in entry ? [entry] : entry.verbs) {
        const words = verb === entry ? verb.name : `${entry.name} ${verb.name}`;
        const section = plain.split(/^(?=\.S[SH])/m).find((each) => new RegExp(`^\\.SS "svcctl ${words}[" ]`).test(each)) ?? '';
        expect(section).toContain(`${verb.help}.\n`);
        for (const { name } of verb.arguments ?? []) expect(section).toContain(`.B ${name}\n`);
        for (const { flags } of verb.options ?? []) expect(section).toContain(`.B ${flags}\n`);
        for (const example of verb.examples ?? []) expect(section).toContain(`\n${example}\n`);
      }
    }
    for (const { flags } of GLOBAL_OPTIONS) expect(plain).toContain(`.B ${flags}\n`);
  });

  test('uses macros of man(7) only, and escapes that every roff knows', () => {
    const macros = new Set([...manual.matchAll(/^\.([A-Z]+|\\"|[a-z]+)/gm)].map(([, macro]) => macro));
    const known = ['\\"', 'TH', 'SH', 'SS', 'PP', 'TP', 'B', 'RI', 'RS', 'RE', 'nf', 'fi', 'nh'];
    expect([...macros].filter((macro) => !known.includes(macro ?? ''))).toEqual([]);
    expect(manual).not.toMatch(/\\(?![-e&"]|\((?:dq|aq|ti))/);
    expect(manual).not.toMatch(/[^\n -~]/);
  });

  test('renders without warnings, where there is a program that renders it', () => {
    const file = path.resolve(import.meta.dirname, '../../docs/reference/svcctl.1');
    const checks = [
      ['groff', ['-man', '-Tutf8', '-ww', '-z', file]],
      ['mandoc', ['-T', 'lint', '-W', 'warning', file]],
    ] as const;
    for (const [program, args] of checks) {
      const { error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
      if (error === undefined) expect(stdout + stderr).toBe('');
    }
  });
});
