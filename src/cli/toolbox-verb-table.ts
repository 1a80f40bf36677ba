/** The verbs of the group "toolbox" as data. */
import { BACKENDS, PROVIDER_KIND_NAMES } from '../schema/slot/provider-kinds.ts';
import { OUTPUTS } from './output/output.ts';
import type { Verb, VerbArgument, VerbOption } from './verb.ts';

const OUTPUT: VerbOption = { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: OUTPUTS };
const CHECKOUT: VerbOption = { flags: '--checkout', help: 'Use the configuration of the checkout, in .svc' };
const PROVIDER: VerbArgument = { name: '<provider>', help: 'Kind of the provider', choices: PROVIDER_KIND_NAMES };
const ANY_PROVIDER: VerbArgument = { name: '[provider]', help: 'Kind of the provider (default: all)', choices: PROVIDER_KIND_NAMES };
const BACKEND: VerbArgument = { name: '[backend]', help: 'Backend (default: that of the provider)', choices: BACKENDS };

export const TOOLBOX_VERBS: readonly Verb[] = [
  {
    name: 'list',
    help: 'List the images in which slots run, with their pins',
    options: [OUTPUT, CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxList,
  },
  {
    name: 'build',
    help: 'Build an image with podman, and pin it in toolboxes.toml',
    arguments: [PROVIDER, BACKEND],
    options: [{ flags: '--build-arg <arguments...>', help: 'Further arguments of the Containerfile, such as BASE=…' }, CHECKOUT],
    examples: ['svcctl toolbox build gguf cpu', 'svcctl toolbox build stt'],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxBuild,
  },
  {
    name: 'pull',
    help: 'Pull the published images of a provider, by their digests',
    arguments: [ANY_PROVIDER],
    options: [CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxPull,
  },
  {
    name: 'verify',
    help: 'Compare the images that podman has with their pins; fails if one is another',
    options: [OUTPUT, CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxVerify,
  },
];
