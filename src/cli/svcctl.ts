/** The part of `svcctl.mjs` whose types Node strips. Loads only what the verb needs. */
import { codeOf } from '../platform/error-text.ts';

const argv = process.argv.slice(2);
if (argv.includes('serve')) {
  const { keepTickShape, keepYoungHeapSmall } = await import('../turbo/heap/heap-limits.ts');
  keepYoungHeapSmall();
  keepTickShape();
}
const { createCli, runSvcctl } = await import('./program.ts');

// The reader of a pipe may stop early: "svcctl slot logs img | head".
process.stdout.on('error', (error) => process.exit(codeOf(error) === 'EPIPE' ? 0 : 1));
process.exitCode = await runSvcctl(argv, createCli(process));
