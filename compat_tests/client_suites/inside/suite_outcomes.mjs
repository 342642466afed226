// Reporter of Node.js: does what suite_outcomes.py does for pytest. A test's id is its file and its names.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

export default async function* report(events) {
  const outcomes = {};
  const names = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      names.length = data.nesting;
      names.push(data.name);
    } else if ((type === 'test:pass' || type === 'test:fail') && data.details.type !== 'suite') {
      const file = relative(process.cwd(), data.file ?? names[0]);
      const id = [file, ...names.slice(0, data.nesting), data.name].join('::');
      const skipped = data.skip !== undefined && data.skip !== false;
      const error = data.details.error?.cause ?? data.details.error;
      const status = type === 'test:fail' ? 'failed' : skipped ? 'skipped' : 'passed';
      const why = status === 'failed' ? String(error?.stack ?? error).slice(0, 2000) : String(data.skip || '');
      outcomes[id] = [status, why, Math.round(data.details.duration_ms) / 1000];
    }
  }
  writeFileSync(process.env.FAKEAMQP_SUITE_OUTCOMES, JSON.stringify(outcomes));
  yield '';
}
