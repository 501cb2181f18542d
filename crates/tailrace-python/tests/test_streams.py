"""How a stream behaves while it is read: in parts, twice, at once, with others, and interrupted."""

import contextlib
import os
import signal
import subprocess
import threading

import polars
import pyarrow as pa
import tailrace

from support import SECONDS_MAX, FilesTestCase, large_file, run, start, threads

MIB = 1 << 20
LINES = 1_000_000


class Streams(FilesTestCase):
    def test_each_consumer_runs_the_query_anew(self):
        path = self.numbers(10_000)
        result = tailrace.query("SELECT n FROM logs", path)
        first = pa.table(result)
        with path.open("a") as file:
            file.write('{"n": "more"}\n')
        self.assertEqual(pa.table(result), first)
        self.assertEqual(pa.table(tailrace.query("SELECT n FROM logs", path)).num_rows, 10_001)

    def test_two_streams_at_once(self):
        path = self.numbers(50_000)
        one = tailrace.query("SELECT n FROM logs", path)
        other = tailrace.query("SELECT -n AS n FROM logs", path)
        readers = [pa.RecordBatchReader.from_stream(it) for it in (one, one, other)]
        sums = [0, 0, 0]
        while True:
            batches = [next(reader, None) for reader in readers]
            if None in batches:
                break
            for at, batch in enumerate(batches):
                sums[at] += sum(batch["n"].to_pylist())
        self.assertEqual(batches, [None] * 3)
        total = sum(range(50_000))
        self.assertEqual(sums, [total, total, -total])

    def test_streams_of_several_threads(self):
        result = tailrace.query("SELECT n, text FROM logs ORDER BY text", self.numbers(30_000))
        tables = []
        workers = [threading.Thread(target=lambda: tables.append(pa.table(result))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(SECONDS_MAX)
        self.assertEqual(len(tables), 4)
        self.assertTrue(all(table == tables[0] for table in tables))

    def test_a_stream_that_is_dropped_ends_its_query(self):
        result = tailrace.query("SELECT n, text FROM logs", self.numbers(200_000))
        self.eventually(lambda: threads() == 0, "the threads of the plan end")
        capsule = result.__arrow_c_stream__()
        del capsule
        reader = pa.RecordBatchReader.from_stream(result)
        self.assertEqual(threads(), 0)
        reader.read_next_batch()
        self.assertGreater(threads(), 0)
        del reader
        self.eventually(lambda: threads() == 0, "the threads of the query end")
        self.assertLess(result.notes["records"], 200_000)

    def test_an_interrupted_query_ends(self):
        result = tailrace.query("SELECT text, count(*) FROM logs GROUP BY text ORDER BY text", self.numbers(1_000_000))
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with self.assertRaises((pa.ArrowInvalid, KeyboardInterrupt)):
            try:
                pa.table(result)
            finally:
                # The interrupt comes twice where it ended the stream.
                with contextlib.suppress(KeyboardInterrupt):
                    threading.Event().wait(0.1)
        self.eventually(lambda: threads() == 0, "the threads of the query end")

    def test_a_pipe_can_be_read_once(self):
        script = """
            result = tailrace.query("SELECT sum(n) AS s FROM logs", "-")
            print(pa.table(result)["s"].to_pylist())
            try:
                pa.table(result)
            except pa.ArrowInvalid as error:
                print(error)
        """
        lines = "".join(f'{{"n":{n}}}\n' for n in range(100_000))
        out = run(script, input=lines).splitlines()
        self.assertEqual(out[0], "[4999950000]")
        self.assertIn("standard input can be read once", out[1])


class Waiting(FilesTestCase):
    """A stream that waits for its data."""

    def read_while_another_thread_writes(self, read):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        line = '{"n":1}\n'

        def write():
            # More than the sample of a pipe, and the rest when the reader waits for it.
            with pipe.open("w") as file:
                file.write(line * 40_000)
                file.flush()
                threading.Event().wait(0.3)
                file.write(line * 10)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        rows = read(tailrace.query("SELECT n FROM logs", pipe))
        writer.join(SECONDS_MAX)
        self.assertEqual(rows, 40_010)

    def test_pyarrow_lets_other_threads_run(self):
        self.read_while_another_thread_writes(lambda result: pa.table(result).num_rows)

    def test_polars_lets_other_threads_run(self):
        self.read_while_another_thread_writes(lambda result: polars.DataFrame(result).height)

    def check_interrupt(self, script: str, given: str):
        with start(script, stdin=subprocess.PIPE) as process:
            try:
                process.stdin.write(given)
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), "ready\n")
                threading.Event().wait(0.3)
                process.send_signal(signal.SIGINT)
                # Its standard input is still open.
                process.wait(SECONDS_MAX)
            finally:
                process.kill()
            self.assertIn("KeyboardInterrupt", process.stderr.read())

    def test_an_interrupt_ends_a_stream_that_waits(self):
        script = """
            result = tailrace.query("SELECT sum(n) FROM logs", "-")
            print("ready", flush=True)
            try:
                pa.table(result)
            except pa.ArrowInvalid:
                # The interrupt follows.
                while True:
                    pass
        """
        self.check_interrupt(script, '{"n":1}\n' * 40_000)

    def test_an_interrupt_ends_a_plan_that_waits(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        script = f"""
            print("ready", flush=True)
            result = tailrace.query("SELECT * FROM logs", {str(pipe)!r})
        """
        self.check_interrupt(script, "")


class Memory(FilesTestCase):
    def test_a_large_file_is_read_in_little_memory(self):
        path = self.directory / "large.log"
        size = large_file(path, LINES)
        self.assertGreater(size, 120 * MIB)
        script = """
            result = tailrace.query("SELECT * FROM logs", sys.argv[1], threads=2)
            before, rows = peak(), 0
            for batch in pa.RecordBatchReader.from_stream(result):
                rows += batch.num_rows
            print(rows, peak() - before)
        """
        rows, growth = map(int, run(script, path).split())
        self.assertEqual(rows, LINES)
        self.assertLess(growth, 96 * MIB)

    def test_few_rows_of_a_large_file_do_not_keep_its_bytes(self):
        path = self.directory / "large.log"
        large_file(path, LINES)
        sql = """SELECT message, "user" FROM logs WHERE level = 'ERROR'"""
        script = """
            result = tailrace.query(sys.argv[2], sys.argv[1], threads=2)
            before = peak()
            table = pa.table(result)
            print(table.num_rows, table.get_total_buffer_size(), peak() - before)
        """
        rows, size, growth = map(int, run(script, path, sql).split())
        self.assertEqual(rows, LINES // 10_000)
        self.assertLess(size, 1 * MIB)
        self.assertLess(growth, 96 * MIB)
