/** Suites that need the data of espeak-ng, with which a Kokoro pronounces words: on Debian, the package `espeak-ng-data`. `SVC_TEST_ESPEAK` names the directory elsewhere. */
import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { describeWith } from './describe-with.ts';

const PLACES = [process.env['SVC_TEST_ESPEAK'] ?? '', '/usr/share/espeak-ng-data', ...globSync('/usr/lib/*/espeak-ng-data')];
const FOUND = PLACES.find((directory) => directory !== '' && existsSync(path.join(directory, 'phontab'))) ?? '';
const REASON = 'SVC_TEST_ESPEAK names no data of espeak-ng, and none is installed';

/** The suite gets the directory. */
export function describeWithEspeak(name: string, suite: (directory: string) => void): void {
  describeWith({ isThere: FOUND !== '', word: 'espeak', what: 'has the data of espeak-ng', reason: REASON }, name, () => suite(FOUND));
}
