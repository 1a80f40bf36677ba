/** The verbs of the group "profile" as data. */
import { OUTPUTS } from './output/output.ts';
import type { Verb, VerbArgument, VerbOption } from './verb.ts';

const PROFILE: VerbArgument = { name: '<profile>', help: 'Name of the profile', suggestions: 'profiles' };
const OUTPUT: VerbOption = { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: OUTPUTS };

export const PROFILE_VERBS: readonly Verb[] = [
  {
    name: 'list',
    help: 'List profiles, and show which one is in force',
    options: [{ ...OUTPUT, choices: [...OUTPUTS, 'name'] }],
    load: async () => (await import('./verbs/profile.ts')).runProfileList,
  },
  {
    name: 'show',
    help: 'Show the slots of a profile, and what a switch to it would do with each',
    arguments: [PROFILE],
    options: [OUTPUT],
    examples: ['svcctl profile show coding', 'svcctl profile show coding -o yaml'],
    load: async () => (await import('./verbs/profile.ts')).runProfileShow,
  },
  {
    name: 'save',
    help: 'Save all slots as they are now as a profile, in place of an earlier one of this name',
    arguments: [{ name: '<profile>', help: 'Name of the profile', suggestions: 'profiles' }],
    options: [
      { flags: '-f, --file <path>', help: 'Save the slots of this file or directory instead; "-" reads standard input', path: true },
      { flags: '--no-replace', help: 'Fail if there is a profile of this name' },
      OUTPUT,
    ],
    examples: ['svcctl profile save coding', 'svcctl profile save images -f images/ --no-replace'],
    load: async () => (await import('./verbs/profile.ts')).runProfileSave,
  },
  {
    name: 'apply',
    help: 'Switch to a profile: change the slots that differ, and disable those that it does not have',
    arguments: [PROFILE],
    options: [{ flags: '--dry-run', help: 'Show the plan and change nothing' }, OUTPUT],
    examples: ['svcctl profile apply coding --dry-run', 'svcctl profile apply coding'],
    load: async () => (await import('./verbs/profile.ts')).runProfileApply,
  },
  {
    name: 'delete',
    help: 'Delete profiles; no slot changes',
    arguments: [{ ...PROFILE, name: '<profiles...>', help: 'Names of the profiles' }],
    load: async () => (await import('./verbs/profile.ts')).runProfileDelete,
  },
];
