/**
 * Builds the dashboard if its sources have changed since the last build: `npm run build:dashboard`. It takes a few seconds.
 *
 * With `--if-possible`, as at `npm start`, a build that fails is reported, and the service starts without the dashboard.
 */
import { buildDashboard } from './stage/build-dashboard.mjs';

try {
  await buildDashboard();
} catch (error) {
  process.stderr.write(`Could not build the dashboard: ${error?.message ?? error}\n`);
  if (!process.argv.includes('--if-possible')) process.exitCode = 1;
}
