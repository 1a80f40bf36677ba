#!/usr/bin/env node
/** The command line's entry: nothing is loaded here that the verb asked for does not need. */
import { enableCompileCache } from 'node:module';
import { keepYoungHeapSmall } from '../platform/heap/heap-limits.ts';

enableCompileCache();
keepYoungHeapSmall();
const { createCli } = await import('./cli.ts');
const { runSvcctl } = await import('./program.ts');

// Whoever reads has seen enough: "svcctl slot logs img | head".
process.stdout.on('error', (error: Error & { readonly code?: string }) => process.exit(error.code === 'EPIPE' ? 0 : 1));
process.exitCode = await runSvcctl(process.argv.slice(2), createCli(process));
