/** Faults in the adapters of a host: what they believe when the system does not answer, and what they leave behind. */
import type { Mutant } from '../support/mutants/mutant.ts';

const RUNTIME = 'src/host/process/process-runtime.ts';
const MONITOR = 'src/host/process/process-monitor.ts';
const RECORDS = 'src/host/process/process-records.ts';
const STATUSES = 'src/files/status-files.ts';
const SOURCE = 'src/host/slots/toml-directory.ts';

const FAULTS: readonly Omit<Mutant, 'worlds'>[] = [
  {
    fault: 'takes records that cannot be listed for none',
    file: RECORDS,
    find: 'await listDirectory(directory, disk)',
    replace: 'await listDirectory(directory, disk).catch(() => [])',
  },
  {
    fault: 'takes the machine for another one when its boot id cannot be read',
    file: MONITOR,
    find: 'boot ??= await table.bootId();',
    replace: "boot ??= await table.bootId().catch(() => 'unknown');",
  },
  {
    fault: 'takes a process that cannot be read for one that ended',
    file: MONITOR,
    find: 'const identity = await table.read(record.pid);',
    replace: 'const identity = await table.read(record.pid).catch(() => undefined);',
  },
  {
    fault: 'does not search for a server that lost its record',
    file: RUNTIME,
    find: 'const searches = lost || !searched;',
    replace: 'const searches = false;',
  },
  {
    fault: 'leaves what a server started',
    file: MONITOR,
    find: '      if (left.length === 0) return true;',
    replace: '      if (left.length < 100) return true;',
  },
  {
    fault: 'takes a status that cannot be read for a damaged one',
    file: STATUSES,
    find: "    if (codeOf(error) !== '' && !isAbsent(error)) throw error;\n",
    replace: '',
  },
  {
    fault: 'begins its generations again when they cannot be read',
    file: SOURCE,
    find: '(await listDirectory(directory, disk)).map',
    replace: '(await listDirectory(directory, disk).catch(() => [])).map',
  },
  {
    fault: 'stores the last good spec without syncing it',
    file: SOURCE,
    find: "sync: 'file',",
    replace: '',
  },
];

export const HOST_MUTANTS: readonly Mutant[] = FAULTS.map((each) => ({ ...each, worlds: 'hosts' }));
